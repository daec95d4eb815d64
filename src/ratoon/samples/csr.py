"""The check of sparse matrices.

SciPy checks only the ends of the index arrays.  Its compiled code trusts the indices between, and
one that is out of range reads or writes outside the matrix.  Every index is therefore checked here
before SciPy or native code uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.errors import FormatError, InvalidInputError

ErrorType = type[FormatError] | type[InvalidInputError]


def checked_csr(
    matrix: Any,
    *,
    source: str = "the sparse X",
    error: ErrorType = InvalidInputError,
    convert: Callable[[Array], Array] | None = None,
    copy: bool = False,
) -> Any:
    """Return a CSR array with sorted, unique indices after checking every index of ``matrix``.

    Duplicate entries are added up.  ``matrix`` is never changed.

    Parameters
    ----------
    matrix : SciPy sparse matrix or array
        Of any format.
    source : str
        Names the matrix in error messages.
    error : type
        Raised if the matrix is damaged.
    convert : callable, optional
        Converts the stored values, before duplicates are added up.
    copy : bool
        Copy the arrays of a matrix that is already canonical instead of sharing them.

    Examples
    --------
    >>> twice = scipy.sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 2))
    >>> checked_csr(twice).toarray()
    array([[0., 3.]])
    """
    if matrix.ndim != 2:
        raise error(f"{source} must have 2 dimensions, got {matrix.ndim}.")
    shape, convert = matrix.shape, convert or _unchanged
    if matrix.format in ("csr", "csc"):
        rows = _from_compressed(matrix, source, error, convert)
    elif matrix.format == "coo":
        for name, size, indices in zip(("row", "column"), shape, matrix.coords, strict=True):
            _check_integers(indices, source, error)
            _check_same_length(indices, matrix.data.shape[0], source, error)
            _check_range(indices, size, name, source, error)
        parts = convert(matrix.data), matrix.coords
        rows = scipy.sparse.csr_array(scipy.sparse.coo_array(parts, shape=shape))
    else:
        if matrix.format == "bsr":
            n_major, n_minor = (n // size for n, size in zip(shape, matrix.blocksize, strict=True))
            check_compressed(
                matrix.indptr,
                matrix.indices,
                matrix.data.shape[0],
                n_major,
                n_minor,
                source=source,
                error=error,
            )
        rows = _from_compressed(scipy.sparse.csr_array(matrix), source, error, convert)
    if rows.has_canonical_format and not (copy and matrix.format == "csr"):
        return rows
    if matrix.format == "csr":
        rows = rows.copy()
    rows.sum_duplicates()
    return rows


def check_compressed(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    n_values: int,
    n_major: int,
    n_minor: int,
    *,
    source: str,
    error: ErrorType = FormatError,
    n_known: int | None = None,
) -> None:
    """Raise unless the index arrays of a CSR or CSC matrix stay inside the matrix.

    Takes time in proportion to the number of stored values.  ``n_known`` is the number of values
    of a matrix whose index pointers are checked before its values are read.

    Examples
    --------
    >>> check_compressed(np.array([0, 1]), np.array([5]), 1, 1, 3, source="bad.npz")
    Traceback (most recent call last):
    ...
    ratoon.errors.FormatError: bad.npz: index 5 lies outside 0..2; the file is damaged.
    """
    _check_integers(indptr, source, error)
    _check_integers(indices, source, error)
    _check_same_length(indices, n_values, source, error)
    if indptr.size != n_major + 1:
        problem = f"there are {indptr.size} index pointers where {n_major + 1} are needed"
        raise _damage(source, problem, error)
    most = n_values if n_known is None else n_known
    if indptr[0] != 0 or np.any(indptr[1:] < indptr[:-1]) or indptr[-1] > most:
        problem = f"the index pointers must rise from 0 to at most {most}"
        raise _damage(source, problem, error)
    _check_range(indices, n_minor, "", source, error)


def _from_compressed(
    matrix: Any, source: str, error: ErrorType, convert: Callable[[Array], Array]
) -> Any:
    """Return a CSR array, not yet canonical, that shares what it can with a CSR or CSC matrix."""
    indptr, indices, data = matrix.indptr, matrix.indices, matrix.data
    n_major, n_minor = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    check_compressed(indptr, indices, data.shape[0], n_major, n_minor, source=source, error=error)
    kind = scipy.sparse.csr_array if matrix.format == "csr" else scipy.sparse.csc_array
    parts = convert(data), indices, indptr
    return scipy.sparse.csr_array(kind(parts, shape=matrix.shape))


def _check_integers(indices: Array, source: str, error: ErrorType) -> None:
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise _damage(source, "the index arrays are not one-dimensional and of integers", error)


def _check_same_length(indices: Array, n_values: int, source: str, error: ErrorType) -> None:
    if indices.size != n_values:
        raise _damage(source, f"there are {n_values} values and {indices.size} indices", error)


def _check_range(indices: Array, size: int, axis: str, source: str, error: ErrorType) -> None:
    if indices.size and (indices.min() < 0 or indices.max() >= size):
        wrong = indices[(indices < 0) | (indices >= size)][0]
        name = f"{axis} index" if axis else "index"
        raise _damage(source, f"{name} {wrong} lies outside 0..{size - 1}", error)


def _damage(source: str, problem: str, error: ErrorType) -> Exception:
    kind = "file" if error is FormatError else "matrix"
    return error(f"{source}: {problem}; the {kind} is damaged.")


def _unchanged(data: Array) -> Array:
    return data
