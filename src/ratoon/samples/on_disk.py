"""Rows of a table on disk, read when they are needed and never all at once.

An HDF5 data set is read in blocks of rows.  A few blocks are kept, and an epoch goes through the
table group by group, each group mixed as a whole, so that every block is read once.  Rows of a
memory map are read one by one, in any order.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError

Rows = NDArray[np.int64]

BLOCK_BYTES = 8 * 2**20
"""About what a block takes, as the numbers it is turned into."""

LARGEST_BLOCK_BYTES = 64 * 2**20
"""What a block takes at most, however tall the chunks of the file are."""

GROUP = 8
"""Blocks that are kept, and mixed with each other."""

_FEWEST_ROWS = 8
# Every value of these types is a float32: half the memory, and nothing lost.
EXACT_IN_FLOAT32 = tuple(map(np.dtype, ("?", "i1", "u1", "i2", "u2", "f2", "f4")))


class RowReader(Protocol):
    """Gets rows from where they are stored."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def take(self, rows: Rows) -> Array:
        """Read these rows, in this order."""
        ...

    def shuffled(self, rows: Rows, generator: np.random.Generator) -> Rows:
        """Return the rows in a random order that can be read at speed."""
        ...


class BlockReader:
    """Reads blocks of consecutive rows, as suits an HDF5 data set, and keeps the last few."""

    def __init__(self, source: Any, group: int = GROUP) -> None:
        self.shape = checked_shape(source)
        self.dtype = float_type(source.dtype)
        self.group = group
        self.block_rows = block_rows(source, self.dtype)
        self._source = source
        self._kept: dict[int, Array] = {}

    def take(self, rows: Rows) -> Array:
        """Read these rows, in this order; blocks at hand are not read again."""
        out = np.empty((rows.size, self.shape[1]), dtype=self.dtype)
        block_of = rows // self.block_rows
        # Those at hand come first: reading another may let go of them.
        for number in sorted(np.unique(block_of).tolist(), key=lambda n: n not in self._kept):
            here = np.flatnonzero(block_of == number)
            out[here] = self._block(number)[rows[here] - number * self.block_rows]
        return out

    def shuffled(self, rows: Rows, generator: np.random.Generator) -> Rows:
        """Mix the order of the blocks, then all rows of each group of them.

        Rows of one group alone come in the order that an array in memory would have.
        """
        blocks, place = np.unique(rows // self.block_rows, return_inverse=True)
        if blocks.size <= self.group:
            return rows[generator.permutation(rows.size)]
        group_of = generator.permutation(blocks.size)[place] // self.group
        return rows[np.lexsort((generator.random(rows.size), group_of))]

    def _block(self, number: int) -> Array:
        if number in self._kept:
            block = self._kept.pop(number)
        else:
            if len(self._kept) >= self.group:
                self._kept.pop(next(iter(self._kept)))  # used longest ago
            first = number * self.block_rows
            block = as_floats(self._source[first : first + self.block_rows], self.dtype)
        self._kept[number] = block
        return block


class MapReader:
    """Reads rows of a memory map one by one; any order is as good as another."""

    def __init__(self, source: Array) -> None:
        self.shape = checked_shape(source)
        self.dtype = float_type(source.dtype)
        self.source = source

    def take(self, rows: Rows) -> Array:
        """Read these rows, in this order."""
        return as_floats(self.source[rows], self.dtype)

    def shuffled(self, rows: Rows, generator: np.random.Generator) -> Rows:
        """Return the rows in any order."""
        return rows[generator.permutation(rows.size)]


class DiskRows:
    """Rows on disk that look like an array; `numpy.asarray` reads them.

    What an index chooses is not read either: it is another view of the same rows.

    Parameters
    ----------
    reader : BlockReader or MapReader
        Gets rows from where they are.
    rows : ndarray of int64, optional
        The rows of the reader that are meant; without it, all.

    Examples
    --------
    >>> x = DiskRows(MapReader(np.arange(6, dtype=np.int16).reshape(3, 2)))
    >>> x.shape, x.dtype
    ((3, 2), dtype('float32'))
    >>> np.asarray(x[np.array([2, 0])])
    array([[4., 5.],
           [0., 1.]], dtype=float32)
    """

    ndim = 2

    def __init__(self, reader: RowReader, rows: Rows | None = None) -> None:
        self.reader = reader
        self._rows = rows

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.reader.shape[0] if self._rows is None else self._rows.size

    @property
    def n_features(self) -> int:
        """How many numbers a row has."""
        return self.reader.shape[1]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return self.n_rows, self.n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        """Number type that rows are read as: float32 or float64."""
        return self.reader.dtype

    @property
    def nbytes(self) -> int:
        """What the rows would take in memory."""
        return self.n_rows * self.n_features * self.dtype.itemsize

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.n_rows * self.n_features

    @property
    def is_whole(self) -> bool:
        """Whether these are all rows of the reader, in their order."""
        return self._rows is None

    @property
    def rows_at_once(self) -> int:
        """How many rows take about as much memory as a block."""
        return max(1, BLOCK_BYTES // max(1, self.n_features * self.dtype.itemsize))

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, key: slice | Array) -> DiskRows:
        if isinstance(key, slice):
            key = np.arange(*key.indices(self.n_rows), dtype=np.int64)
        rows = np.asarray(key)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64, copy=False)
        if rows.size == self.n_rows and np.array_equal(rows, np.arange(rows.size)):
            return self
        return DiskRows(self.reader, rows if self._rows is None else self._rows[rows])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("rows on disk cannot be had without a copy.")
        rows = np.arange(self.n_rows, dtype=np.int64) if self._rows is None else self._rows
        return self.reader.take(rows).astype(dtype or self.dtype, copy=False)

    def shuffled(self, rows: Rows, generator: np.random.Generator) -> Rows:
        """Return some of these rows in a random order that can be read at speed."""
        if self._rows is None:
            return self.reader.shuffled(rows, generator)
        stored = self._rows[rows]
        back = np.argsort(stored, kind="stable")
        mixed = self.reader.shuffled(stored, generator)
        return rows[back[np.searchsorted(stored, mixed, sorter=back)]]

    def check(self) -> None:
        """Read everything once; raise if a value is missing or infinite."""
        for first in range(0, self.n_rows, self.rows_at_once):
            np.asarray(self[first : first + self.rows_at_once])


def rows_on_disk(x: Any) -> DiskRows | None:
    """Return the rows of what should be read from disk piece by piece; None for anything else.

    That is an HDF5 data set, or a memory map of numbers that kernels cannot read where they lie.
    """
    if isinstance(x, DiskRows):
        return x
    if type(x).__module__.split(".")[0] == "h5py" and hasattr(x, "chunks"):
        return DiskRows(BlockReader(x))
    if isinstance(x, np.memmap) and x.dtype.kind in "biuf" and not is_readable(x):
        return DiskRows(MapReader(x))
    return None


def is_readable(x: Array) -> bool:
    """Whether kernels read an array as it lies in memory."""
    return (
        x.ndim == 2
        and x.dtype in (np.dtype(np.float32), np.dtype(np.float64))
        and x.flags.aligned
        and x.strides[1] == x.itemsize
        and x.strides[0] >= 0
    )


def block_rows(source: Any, dtype: np.dtype[Any]) -> int:
    """Return how many rows a block has: whole chunks of the file, about `BLOCK_BYTES`.

    Chunks that are too tall are read in parts, and unpacked as many times.
    """
    row_bytes = max(1, source.shape[1] * dtype.itemsize)
    chunk = source.chunks[0] if getattr(source, "chunks", None) else 1
    wanted = max(_FEWEST_ROWS, BLOCK_BYTES // row_bytes)
    most = max(_FEWEST_ROWS, LARGEST_BLOCK_BYTES // row_bytes)
    return int(min(max(1, round(wanted / chunk)) * chunk, most))


def float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type that numbers are read as: float32 where that loses nothing.

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
    """Return rows and features of a table that has both."""
    shape = tuple(int(n) for n in source.shape)
    if len(shape) != 2 or min(shape) < 1:
        raise InvalidInputError(
            f"samples on disk must be a table of rows and features, got an array of shape {shape}."
        )
    return shape[0], shape[1]


def as_floats(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return values as this number type; raise if one of them is missing or infinite."""
    numbers = np.ascontiguousarray(values, dtype=dtype)
    # One number tells of all: a sum is finite only if everything in it is.
    with np.errstate(over="ignore", invalid="ignore"):
        total = numbers.sum(dtype=np.float64)
    if not np.isfinite(total) and not np.isfinite(numbers).all():
        what = "NaN" if np.isnan(numbers).any() else "infinity"
        raise InvalidInputError(f"Input X contains {what}.")
    return numbers
