"""Samples on disk: rows of a table that are read when they are needed, never all at once.

An HDF5 data set is read in blocks of rows.  A group of blocks is kept in memory.  An epoch takes
one group after the other and shuffles the rows within it, so that every block is read once.  Rows
of a memory map are read one by one, in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.samples.base import Rows, Samples

BLOCK_BYTES = 8 * 2**20
"""Target size of a block in memory."""

LARGEST_BLOCK_BYTES = 64 * 2**20
"""Maximum size of a block, also where the chunks of the file are larger."""

GROUP = 8
"""Number of blocks that are kept and whose rows are shuffled together."""

_FEWEST_ROWS = 8
# float32 holds every value of these types exactly and takes half the memory of float64.
EXACT_IN_FLOAT32 = tuple(map(np.dtype, ("?", "i1", "u1", "i2", "u2", "f2", "f4")))
COMPACT = tuple(map(np.dtype, ("?", "i1", "u1", "i2", "u2")))
"""Types that kernels read without a copy and convert number by number."""


class RowReader(Protocol):
    """Reads rows from a file."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def take(self, rows: Rows) -> Array:
        """Read these rows, in this order."""
        ...

    def shuffled(self, rows: Rows, generator: np.random.Generator) -> Rows:
        """Return the rows in a random order that is fast to read."""
        ...


class KeptBlocks(ABC):
    """Blocks of consecutive rows, of which the last ones used are kept in memory.

    Parameters
    ----------
    block_rows : int
        Rows of a block.
    group : int
        Blocks that are kept and whose rows are shuffled together.
    """

    def __init__(self, block_rows: int, group: int) -> None:
        self.block_rows, self.group = block_rows, group
        self._kept: dict[int, Any] = {}

    @abstractmethod
    def _read(self, first: int, last: int) -> Any:
        """Read consecutive rows."""

    def shuffled(self, rows: Rows, generator: np.random.Generator) -> Rows:
        """Shuffle the blocks, then the rows within each group of blocks.

        If all rows are in one group, the order is that of an array in memory.
        """
        blocks, position = np.unique(rows // self.block_rows, return_inverse=True)
        if blocks.size <= self.group:
            return rows[generator.permutation(rows.size)]
        group_of = generator.permutation(blocks.size)[position] // self.group
        return rows[np.lexsort((generator.random(rows.size), group_of))]

    def _blocks_of(self, rows: Rows) -> Iterator[tuple[NDArray[np.intp], Any, Rows]]:
        """Yield positions in ``rows``, their block, and the rows within it."""
        block_of = rows // self.block_rows
        # Blocks in memory come first, because reading another block may discard them.
        for number in sorted(np.unique(block_of).tolist(), key=lambda n: n not in self._kept):
            selected = np.flatnonzero(block_of == number)
            yield selected, self._block(number), rows[selected] - number * self.block_rows

    def _block(self, number: int) -> Any:
        if number in self._kept:
            block = self._kept.pop(number)
        else:
            if len(self._kept) >= self.group:
                self._kept.pop(next(iter(self._kept)))  # least recently used
            first = number * self.block_rows
            block = self._read(first, first + self.block_rows)
        self._kept[number] = block
        return block


class BlockReader(KeptBlocks):
    """Reads an HDF5 data set in blocks of consecutive rows and keeps the last blocks."""

    def __init__(self, source: Any, group: int = GROUP) -> None:
        self.shape = checked_shape(source)
        self.dtype = float_type(source.dtype)
        super().__init__(block_rows(source, self.dtype), group)
        self._source = source

    def take(self, rows: Rows) -> Array:
        """Read these rows, in this order; blocks in memory are not read again."""
        out = np.empty((rows.size, self.shape[1]), dtype=self.dtype)
        for selected, block, inside in self._blocks_of(rows):
            out[selected] = block[inside]
        return out

    def _read(self, first: int, last: int) -> Array:
        return as_floats(self._source[first:last], self.dtype)


class MapReader:
    """Reads rows of a memory map one by one, in any order."""

    def __init__(self, source: Array) -> None:
        self.shape = checked_shape(source)
        self.dtype = float_type(source.dtype)
        self.source = source

    def take(self, rows: Rows) -> Array:
        """Read these rows, in this order."""
        return as_floats(self.source[rows], self.dtype)

    def shuffled(self, rows: Rows, generator: np.random.Generator) -> Rows:
        """Return the rows in a random order."""
        return rows[generator.permutation(rows.size)]


class DiskRows(Samples):
    """Rows on disk that look like an array; `numpy.asarray` reads them.

    An index selects rows without reading them.

    Parameters
    ----------
    reader : BlockReader or MapReader
        Reads the rows.
    rows : ndarray of int64, optional
        Rows of the reader to use; by default all.

    Examples
    --------
    >>> x = DiskRows(MapReader(np.arange(6, dtype=np.int16).reshape(3, 2)))
    >>> x.shape, x.dtype
    ((3, 2), dtype('float32'))
    >>> np.asarray(x[np.array([2, 0])])
    array([[4., 5.],
           [0., 1.]], dtype=float32)
    """

    is_on_disk = True

    def __init__(self, reader: RowReader, rows: Rows | None = None) -> None:
        self.reader = reader
        self._rows = rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        n_rows, n_features = self.reader.shape
        return (n_rows if self._rows is None else self._rows.size), n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        """Number type that rows are read as: float32 or float64."""
        return self.reader.dtype

    @property
    def nbytes(self) -> int:
        """Memory that the rows would take if all were read."""
        return self.size * self.dtype.itemsize

    @property
    def size(self) -> int:
        """Number of values."""
        return self.n_rows * self.n_features

    @property
    def row_numbers(self) -> Rows | None:
        """Rows of the reader that these are; None for all."""
        return self._rows

    @property
    def is_whole(self) -> bool:
        """Whether these are all rows of the reader, in their order."""
        return self._rows is None

    @property
    def rows_at_once(self) -> int:
        """Number of rows that take about as much memory as a block."""
        return max(1, BLOCK_BYTES // max(1, self.n_features * self.dtype.itemsize))

    def __getitem__(self, key: slice | Array) -> Self:
        if isinstance(key, slice):
            key = np.arange(*key.indices(self.n_rows), dtype=np.int64)
        rows = np.asarray(key)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64, copy=False)
        if rows.size == self.n_rows and np.array_equal(rows, np.arange(rows.size)):
            return self
        return type(self)(self.reader, rows if self._rows is None else self._rows[rows])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("rows on disk cannot be read without a copy.")
        rows = np.arange(self.n_rows, dtype=np.int64) if self._rows is None else self._rows
        return self.reader.take(rows).astype(dtype or self.dtype, copy=False)

    def values(self, dtype: DTypeLike | None = None) -> Array:
        """Read all rows."""
        return np.asarray(self, dtype=dtype)

    def dense(self, rows: slice | Array = slice(None)) -> Array:
        """Read some of the rows, by default all."""
        return np.asarray(self[rows])

    def shuffled(self, rows: Rows, generator: np.random.Generator) -> Rows:
        """Return these rows in a random order that is fast to read."""
        if self._rows is None:
            return self.reader.shuffled(rows, generator)
        stored = self._rows[rows]
        back = np.argsort(stored, kind="stable")
        mixed = self.reader.shuffled(stored, generator)
        return rows[back[np.searchsorted(stored, mixed, sorter=back)]]

    def check(self) -> None:
        """Read all rows once; raise if a value is missing or infinite."""
        for rows in self.blocks():
            self.dense(rows)

    def blocks(self) -> Iterator[slice]:
        """Yield all rows in order, about as many at a time as fit into a block."""
        for first in range(0, self.n_rows, self.rows_at_once):
            yield slice(first, min(first + self.rows_at_once, self.n_rows))


def rows_on_disk(x: Any) -> DiskRows | None:
    """Return an HDF5 data set, or a memory map that kernels cannot read directly, as `DiskRows`.

    Return None for anything else.
    """
    if isinstance(x, DiskRows):
        return x
    if type(x).__module__.split(".")[0] == "h5py" and hasattr(x, "chunks"):
        return DiskRows(BlockReader(x))
    if isinstance(x, np.memmap) and x.dtype.kind in "biuf" and not is_readable(x):
        return DiskRows(MapReader(x))
    return None


def is_readable(x: Array) -> bool:
    """Whether kernels can read an array without a copy."""
    return (
        x.ndim == 2
        and x.dtype in (np.dtype(np.float32), np.dtype(np.float64), *COMPACT)
        and x.flags.aligned
        and x.strides[1] == x.itemsize
        and x.strides[0] >= 0
    )


def block_rows(source: Any, dtype: np.dtype[Any]) -> int:
    """Return the number of rows of a block: whole chunks of the file, about `BLOCK_BYTES`.

    Chunks larger than `LARGEST_BLOCK_BYTES` are read in parts and unpacked once for each part.
    """
    row_bytes = max(1, source.shape[1] * dtype.itemsize)
    chunk = source.chunks[0] if getattr(source, "chunks", None) else 1
    wanted = max(_FEWEST_ROWS, BLOCK_BYTES // row_bytes)
    most = max(_FEWEST_ROWS, LARGEST_BLOCK_BYTES // row_bytes)
    return int(min(max(1, round(wanted / chunk)) * chunk, most))


def float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type that numbers are read as: float32 if it holds them exactly, else float64.

    Examples
    --------
    >>> float_type(np.dtype("int16")), float_type(np.dtype("int32"))
    (dtype('float32'), dtype('float64'))
    """
    if dtype.kind not in "biuf":
        raise InvalidInputError(f"samples on disk must be numbers, got values of type {dtype}.")
    exact = dtype.newbyteorder("=") in EXACT_IN_FLOAT32
    return np.dtype(np.float32) if exact else np.dtype(np.float64)


def checked_shape(source: Any) -> tuple[int, int]:
    """Return the number of rows and features; raise unless there are both."""
    shape = tuple(int(n) for n in source.shape)
    if len(shape) != 2 or min(shape) < 1:
        raise InvalidInputError(
            f"samples on disk must be a table of rows and features, got an array of shape {shape}."
        )
    return shape[0], shape[1]


def as_floats(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return values as this number type; raise if one of them is missing or infinite."""
    numbers = np.ascontiguousarray(values, dtype=dtype)
    # A sum is finite only if all its terms are.
    with np.errstate(over="ignore", invalid="ignore"):
        total = numbers.sum(dtype=np.float64)
    if not np.isfinite(total) and not np.isfinite(numbers).all():
        kind = "NaN" if np.isnan(numbers).any() else "infinity"
        raise InvalidInputError(f"Input X contains {kind}.")
    return numbers
