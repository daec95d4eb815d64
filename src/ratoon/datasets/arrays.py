"""Check and convert arrays from outside.

A file can contain any kind of array; a `Dataset` has aligned, native, contiguous floats, or a
sparse matrix with every index checked.  SciPy's own constructor checks only the ends of the index
arrays, and compiled code that follows a bad index reads or writes outside its memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from ratoon.datasets.dataset import Matrix
from ratoon.errors import FormatError, InvalidInputError


def as_matrix(values: Any, *, dtype: DTypeLike = np.float32, source: str = "X") -> Matrix:
    """Return ``values`` as an aligned, contiguous float array, or as a checked CSR matrix.

    Examples
    --------
    >>> as_matrix(np.array([[1, 2]], dtype=">i2"))
    array([[1., 2.]], dtype=float32)
    """
    if sp.issparse(values):
        return checked_csr(values, dtype=dtype, source=source)
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise InvalidInputError(
            f"{source}: the array has masked values, which would be used as numbers.\n"
            "  Fill them first, for instance values.filled(np.nan), and pass missing='mean'."
        )
    array = np.asarray(values)
    if array.ndim != 2:
        raise FormatError(f"{source}: a table needs two dimensions, this array has {array.ndim}.")
    return _as_float(array, dtype, source)


def _as_float(array: NDArray[Any], dtype: DTypeLike, source: str) -> NDArray[Any]:
    if array.dtype.kind not in "biuf":
        raise FormatError(
            f"{source}: values of type {array.dtype} are not numbers.\n"
            "  Store real numbers (integers or floats) and read the file again."
        )
    # Overflow is checked below; a signalling NaN is treated like any NaN.
    with np.errstate(over="ignore", invalid="ignore"):
        converted = np.require(array, dtype=dtype, requirements=["C", "A"])
    if array.dtype.kind == "f" and array.dtype.itemsize > np.dtype(dtype).itemsize:
        _check_no_overflow(array, converted, source)
    return converted


def _check_no_overflow(before: NDArray[Any], after: NDArray[Any], source: str) -> None:
    overflown = np.isinf(after)
    if overflown.any() and not np.isinf(before[overflown]).all():
        raise FormatError(
            f"{source}: values such as {before[overflown][0]:.3g} do not fit into {after.dtype}.\n"
            "  Pass dtype='float64', or scale the data."
        )


def checked_csr(matrix: Any, *, dtype: DTypeLike = np.float32, source: str = "X") -> Matrix:
    """Return a CSR copy with sorted, unique, in-range indices; the argument is left alone.

    Examples
    --------
    >>> twice = sp.csr_array(([1.0, 2.0], [1, 1], [0, 2]), shape=(1, 3))
    >>> checked_csr(twice).toarray()
    array([[0., 3., 0.]], dtype=float32)
    """
    if matrix.format == "coo":
        rows, columns = matrix.coords
        _check_range(rows, matrix.shape[0], "row", source)
        _check_range(columns, matrix.shape[1], "column", source)
    elif matrix.format in ("csr", "csc"):
        major, minor = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
        check_compressed(
            matrix.indptr, matrix.indices, matrix.data.shape[0], major, minor, source=source
        )
    elif matrix.format not in ("lil", "dok", "dia", "bsr"):
        raise FormatError(f"{source}: unknown sparse format {matrix.format!r}.")
    data = _as_float(np.asarray(matrix.data), dtype, source) if matrix.format in _FLAT else None
    result = (
        sp.csr_matrix(matrix.tocsr(copy=True), dtype=dtype)
        if data is None
        else _rebuild(matrix, data)
    )
    result.sum_duplicates()
    result.sort_indices()
    return result


_FLAT = ("coo", "csr", "csc")
"""Formats whose ``data`` is one flat array that can be converted before the indices are used."""


def _rebuild(matrix: Any, data: NDArray[Any]) -> Matrix:
    if matrix.format == "coo":
        return sp.coo_matrix((data, matrix.coords), shape=matrix.shape).tocsr()
    # Copies: the matrix is sorted in place afterwards, and it may be the user's.
    indices, indptr = matrix.indices.copy(), matrix.indptr.copy()
    kind = sp.csr_matrix if matrix.format == "csr" else sp.csc_matrix
    return kind((data.copy(), indices, indptr), shape=matrix.shape).tocsr()


def check_compressed(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    n_values: int,
    n_major: int,
    n_minor: int,
    *,
    source: str,
) -> None:
    """Raise unless CSR (or CSC) index arrays point only inside their matrix; O(stored values).

    Examples
    --------
    >>> check_compressed(np.array([0, 1]), np.array([5]), 1, 1, 3, source="bad.npz")
    Traceback (most recent call last):
    ...
    ratoon.errors.FormatError: bad.npz: an index 5 lies outside 0..2; the file is damaged.
    """
    if indptr.ndim != 1 or indices.ndim != 1 or "f" in (indptr.dtype.kind, indices.dtype.kind):
        raise FormatError(f"{source}: sparse index arrays must be flat whole numbers.")
    if indptr.size != n_major + 1 or (indptr.size and indptr[0] != 0):
        raise FormatError(
            f"{source}: the sparse row starts do not fit {n_major} rows; the file is damaged."
        )
    if np.any(indptr[1:] < indptr[:-1]):
        raise FormatError(f"{source}: the sparse row starts go backwards; the file is damaged.")
    if indptr[-1] > indices.size or indices.size != n_values:
        raise FormatError(
            f"{source}: sparse row starts promise {indptr[-1]} values, there are {n_values} values"
            f" and {indices.size} indices; the file is damaged."
        )
    _check_range(indices, n_minor, "", source)


def _check_range(indices: NDArray[Any], size: int, what: str, source: str) -> None:
    if indices.size and (indices.min() < 0 or indices.max() >= size):
        bad = indices[(indices < 0) | (indices >= size)][0]
        what = f"{what} index" if what else "index"
        article = "a" if what[0] not in "aeiou" else "an"
        raise FormatError(
            f"{source}: {article} {what} {bad} lies outside 0..{size - 1}; the file is damaged."
        )


def sparse_if_mostly_zero(matrix: Matrix, *, threshold: float = 0.1) -> Matrix:
    """Return a CSR matrix if the fraction of values that are not zero is below ``threshold``.

    Examples
    --------
    >>> sparse_if_mostly_zero(np.eye(100, dtype=np.float32)).nnz
    100
    """
    if sp.issparse(matrix) or not matrix.size:
        return matrix
    if np.count_nonzero(matrix) < threshold * matrix.size:
        return sp.csr_matrix(matrix)
    return matrix
