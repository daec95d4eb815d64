"""Sparse samples on disk: rows of a CSR matrix in an HDF5 file, read in blocks of rows.

The row starts are in memory, 8 bytes per row.  Values and column numbers are read for one block of
rows at a time, and a few blocks are kept.  Every index is checked when it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import DTypeLike, NDArray

from ratoon.arrays import Array
from ratoon.errors import FormatError
from ratoon.samples.base import Rows
from ratoon.samples.csr import check_compressed, checked_csr
from ratoon.samples.on_disk import (
    BLOCK_BYTES,
    GROUP,
    LARGEST_BLOCK_BYTES,
    DiskRows,
    KeptBlocks,
    as_floats,
    checked_shape,
    float_type,
)

_INDEX_BYTES = 4


class CsrReader(KeptBlocks):
    """Reads rows of a CSR matrix on disk.

    Parameters
    ----------
    values, indices : array or HDF5 data set of shape (n_stored,)
        Stored values and their column numbers.
    starts : array or HDF5 data set of shape (n_rows + 1,)
        Position of the first value of each row; read at once.
    n_columns : int
        Number of features.
    source : str
        Names the matrix in messages.
    group : int
        Blocks that are kept and whose rows are shuffled together.

    Examples
    --------
    >>> matrix = scipy.sparse.csr_array([[0.0, 2.0], [3.0, 0.0], [0.0, 0.0]])
    >>> reader = CsrReader(matrix.data, matrix.indices, matrix.indptr, 2)
    >>> reader.take(np.array([1, 0])).toarray().tolist()
    [[3.0, 0.0], [0.0, 2.0]]
    """

    def __init__(
        self,
        values: Any,
        indices: Any,
        starts: Any,
        n_columns: int,
        *,
        source: str = "the sparse X",
        group: int = GROUP,
    ) -> None:
        self.starts: NDArray[np.int64] = np.asarray(starts[:])
        n_stored = int(values.shape[0])
        no_columns = np.empty(0, dtype=np.int64)
        if len(values.shape) != 1 or values.shape != indices.shape:
            raise FormatError(
                f"{source}: values of shape {values.shape} and indices of shape {indices.shape};"
                " the matrix is damaged."
            )
        # The indices themselves are checked when they are read.
        n_rows = self.starts.size - 1
        check_compressed(self.starts, no_columns, 0, n_rows, 1, source=source, n_known=n_stored)
        self.starts = self.starts.astype(np.int64, copy=False)
        self.shape = (n_rows, int(n_columns))
        checked_shape(self)
        self.dtype = float_type(values.dtype)
        self._values, self._indices, self._source = values, indices, source
        super().__init__(self._rows_of_a_block(), group)

    @property
    def n_stored(self) -> int:
        """Number of stored values."""
        return int(self.starts[-1])

    @property
    def row_bytes(self) -> float:
        """Mean size of a row in memory."""
        return self.n_stored / self.shape[0] * (self.dtype.itemsize + _INDEX_BYTES) + 8.0

    def take(self, rows: Rows) -> Any:
        """Read these rows, in this order, as a CSR array."""
        parts, order = [], []
        for selected, block, inside in self._blocks_of(rows):
            parts.append(block[inside])
            order.append(selected)
        if not parts:
            return scipy.sparse.csr_array((0, self.shape[1]), dtype=self.dtype)
        if len(parts) == 1:
            return parts[0]
        back = np.empty(rows.size, dtype=np.int64)
        back[np.concatenate(order)] = np.arange(rows.size)
        return scipy.sparse.vstack(parts, format="csr")[back]

    def _rows_of_a_block(self) -> int:
        """Return the rows of a block: about `BLOCK_BYTES`, in no block much more than that."""
        rows = max(1, int(BLOCK_BYTES / self.row_bytes))
        size = self.dtype.itemsize + _INDEX_BYTES
        while rows > 1:
            bounds = self.starts[np.append(np.arange(0, self.shape[0], rows), self.shape[0])]
            if size * int(np.diff(bounds).max()) <= LARGEST_BLOCK_BYTES:
                break
            rows //= 2
        return rows

    def _read(self, first: int, last: int) -> Any:
        starts = self.starts[first : last + 1]
        begin, end = int(starts[0]), int(starts[-1])
        values = as_floats(np.asarray(self._values[begin:end]), self.dtype)
        matrix = scipy.sparse.csr_array((starts.size - 1, self.shape[1]), dtype=self.dtype)
        matrix.data, matrix.indices = values, np.asarray(self._indices[begin:end])
        matrix.indptr = starts - begin
        found = checked_csr(matrix, source=self._source, error=FormatError)
        found.indices = found.indices.astype(np.int32, copy=False)
        found.indptr = found.indptr.astype(np.int64, copy=False)
        return found


class DiskCsrRows(DiskRows):
    """Rows of a CSR matrix on disk; an index selects rows without reading them.

    Training on them gives what the same rows in memory give: features are scaled but not centred.

    Parameters
    ----------
    reader : CsrReader
        Reads the rows.
    rows : ndarray of int64, optional
        Rows of the reader to use; by default all.

    Examples
    --------
    >>> matrix = scipy.sparse.csr_array([[0.0, 2.0], [3.0, 0.0], [0.0, 0.0]])
    >>> x = DiskCsrRows(CsrReader(matrix.data, matrix.indices, matrix.indptr, 2))
    >>> x.shape, x.is_sparse, x.n_stored, x[np.array([1])].values().toarray().tolist()
    ((3, 2), True, 2, [[3.0, 0.0]])
    """

    is_sparse = True
    reader: CsrReader

    @property
    def n_stored(self) -> int:
        """Number of stored values of these rows."""
        if self._rows is None:
            return self.reader.n_stored
        starts = self.reader.starts
        return int((starts[self._rows + 1] - starts[self._rows]).sum())

    @property
    def nbytes(self) -> int:
        """Memory that the rows would take if all were read."""
        return self.n_stored * (self.dtype.itemsize + _INDEX_BYTES) + 8 * (self.n_rows + 1)

    @property
    def rows_at_once(self) -> int:
        """Number of rows that take about as much memory as a block."""
        return max(1, int(BLOCK_BYTES / self.reader.row_bytes))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("rows on disk cannot be read without a copy.")
        return np.asarray(self.values(dtype).toarray())

    def values(self, dtype: DTypeLike | None = None) -> Any:
        """Read all rows as a CSR array."""
        rows = np.arange(self.n_rows, dtype=np.int64) if self._rows is None else self._rows
        found = self.reader.take(rows)
        return found if dtype is None else found.astype(dtype, copy=False)

    def check(self) -> None:
        """Read all rows once; raise if a value is missing or an index is outside the matrix."""
        for _ in self.parts():
            pass

    def parts(self) -> Iterator[tuple[slice, Any]]:
        """Yield slices of rows, and these rows as a CSR array, about a block at a time."""
        for rows in self.blocks():
            yield rows, self[rows].values()
