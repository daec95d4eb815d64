"""Samples in memory: dense arrays, memory maps that kernels read directly, and CSR matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.samples.base import Samples
from ratoon.samples.csr import checked_csr
from ratoon.samples.on_disk import COMPACT, DiskRows, MapReader


class DenseSamples(Samples):
    """Rows of a dense array.

    Rows selected by number are copied, except those of a memory map: they stay on disk.  Integers
    of 8 and 16 bits are kept as they are, and converted to float32 where their values are returned.

    Parameters
    ----------
    array : ndarray of two dimensions
        Kept as `array`, the numbers as they are stored.

    Examples
    --------
    >>> x = DenseSamples(np.arange(6.0).reshape(3, 2))
    >>> x.shape, x.is_sparse, x[np.array([2, 0])].dense().tolist()
    ((3, 2), False, [[4.0, 5.0], [0.0, 1.0]])
    """

    def __init__(self, array: Array) -> None:
        self.array = array

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.array.shape[0], self.array.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Number type of the values; float32 for integers of 8 and 16 bits."""
        dtype: np.dtype[Any] = self.array.dtype
        return np.dtype(np.float32) if dtype in COMPACT else dtype

    def __getitem__(self, rows: slice | Array) -> Samples:
        if not isinstance(rows, slice) and _is_mapped(self.array):
            return DiskRows(MapReader(self.array))[rows]
        return DenseSamples(self.array[rows])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is None:  # NumPy 1 does not know this value
            return np.asarray(self.array, dtype=dtype or self.dtype)
        return np.array(self.array, dtype=dtype or self.dtype, copy=copy)

    def values(self, dtype: DTypeLike | None = None) -> Array:
        """Return the array."""
        return np.asarray(self.array, dtype=dtype or self.dtype)

    def dense(self, rows: slice | Array = slice(None)) -> Array:
        """Return some of the rows, by default all."""
        return np.asarray(self.array[rows], dtype=self.dtype)


class SparseSamples(Samples):
    """Rows of a CSR matrix that `checked_csr` returned.

    Examples
    --------
    >>> x = SparseSamples(checked_csr(scipy.sparse.eye_array(3)))
    >>> x.shape, x.is_sparse, x.n_stored, x[1:].dense().tolist()
    ((3, 3), True, 3, [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    """

    is_sparse = True

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.matrix.shape[0], self.matrix.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Number type of the values."""
        dtype: np.dtype[Any] = self.matrix.dtype
        return dtype

    @property
    def n_stored(self) -> int:
        """Number of stored values."""
        return int(self.matrix.nnz)

    def __getitem__(self, rows: slice | Array) -> SparseSamples:
        return SparseSamples(self.matrix[rows])

    def values(self, dtype: DTypeLike | None = None) -> Any:
        """Return the CSR matrix."""
        return self.matrix if dtype is None else scipy.sparse.csr_array(self.matrix, dtype=dtype)

    def dense(self, rows: slice | Array = slice(None)) -> Array:
        """Return some of the rows, by default all, with their zeros."""
        return np.asarray(self.matrix[rows].toarray())

    def select_features(self, features: Array) -> SparseSamples:
        """Return these features only, which are ascending, in time of the stored values.

        Examples
        --------
        >>> x = SparseSamples(checked_csr(scipy.sparse.eye_array(3)))
        >>> x.select_features(np.array([0, 2])).dense().tolist()
        [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
        """
        matrix = self.matrix
        places = np.minimum(np.searchsorted(features, matrix.indices), features.size - 1)
        kept = features[places] == matrix.indices
        before = np.concatenate([[0], np.cumsum(kept)])
        parts = matrix.data[kept], places[kept], before[matrix.indptr]
        shape = (matrix.shape[0], features.size)
        return SparseSamples(scipy.sparse.csr_array(parts, shape=shape))


def wrap(x: Any) -> Samples:
    """Return an array or a SciPy matrix as samples; indices are checked, values are not.

    Raises
    ------
    InvalidInputError
        If a sparse matrix is damaged, or there are not two dimensions.

    Examples
    --------
    >>> wrap([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    if isinstance(x, Samples):
        return x
    if scipy.sparse.issparse(x):
        return SparseSamples(checked_csr(x))
    array = np.asarray(x)
    if array.ndim != 2:
        raise InvalidInputError(f"samples are rows of features, got shape {array.shape}.")
    return DenseSamples(array)


def _is_mapped(array: Array) -> bool:
    return any(isinstance(a, np.memmap) for a in (array, array.base))
