"""Check and convert arrays from outside.

A file can contain any kind of array; a `Dataset` has aligned, native, contiguous floats, or a
sparse matrix with every index checked.  SciPy's own constructor checks only the ends of the index
arrays, and compiled code that follows a bad index reads or writes outside its memory.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from ratoon.datasets.dataset import Matrix
from ratoon.errors import FormatError, InvalidInputError
from ratoon.samples import csr as samples_csr
from ratoon.samples.csr import check_compressed as check_compressed


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
    convert = partial(_as_float, dtype=dtype, source=source)
    checked = samples_csr.checked_csr(
        matrix, source=source, error=FormatError, convert=convert, copy=True
    )
    return sp.csr_matrix(checked)


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
