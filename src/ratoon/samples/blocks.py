"""Rows of Dask arrays and of Arrow and Parquet datasets, read in blocks under a memory bound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.samples.on_disk import GROUP, LARGEST_BLOCK_BYTES, BlockReader, DiskRows, as_floats

MOST_BYTES = GROUP * LARGEST_BLOCK_BYTES
"""Most bytes of a row group of a Parquet file in memory."""


def rows_in_blocks(x: Any) -> DiskRows | None:
    """Return a Dask array, or an Arrow or Parquet dataset, as rows that are read when needed.

    Return None for anything else.
    """
    root = type(x).__module__.split(".")[0]
    if root == "dask" or (hasattr(x, "__dask_graph__") and hasattr(x, "chunks")):
        return DiskRows(BlockReader(_DaskRows(x)))
    if root == "pyarrow" and hasattr(x, "get_fragments"):
        return DiskRows(ParquetReader(x))
    return None


class _DaskRows:
    """A Dask array with the interface of an HDF5 data set."""

    def __init__(self, source: Any) -> None:
        if not hasattr(source, "chunks"):
            raise InvalidInputError(
                f"X is a Dask {type(source).__name__}, not an array.\n"
                f"  Give X.to_dask_array(lengths=True)."
            )
        if any(math.isnan(size) for size in source.shape):
            raise InvalidInputError(
                "X is a Dask array of unknown shape; call X.compute_chunk_sizes() first."
            )
        self.shape = source.shape
        self.dtype = source.dtype
        self.chunks = (max(source.chunks[0]), *source.shape[1:])
        self._source = source

    def __getitem__(self, rows: slice) -> Array:
        block = self._source[rows].compute()
        if not isinstance(block, np.ndarray):
            raise InvalidInputError(
                f"X is a Dask array of blocks of type {type(block).__name__}; blocks must be dense"
                f" arrays of NumPy."
            )
        return block


class ParquetReader:
    """Reads the row groups of an Arrow dataset of Parquet files, and keeps the last ones.

    Parameters
    ----------
    source : pyarrow.dataset.Dataset
        Of Parquet files.
    columns : list of str, optional
        Columns to use; by default all.

    Notes
    -----
    The order of an epoch is that of an HDF5 data set: row groups in random order, rows shuffled
    within groups of them.
    """

    def __init__(self, source: Any, columns: list[str] | None = None) -> None:
        self.columns = list(source.schema.names) if columns is None else columns
        self.dtype = _common_type(source.schema, self.columns)
        self._parts = _row_groups(source)
        sizes = [size for _, size in self._parts]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.shape = (int(self._starts[-1]), len(self.columns))
        if min(self.shape) < 1:
            raise InvalidInputError(f"the dataset is empty: its shape is {self.shape}.")
        row_bytes = self.dtype.itemsize * len(self.columns)
        largest = max(sizes) * row_bytes
        if largest > MOST_BYTES:
            raise InvalidInputError(
                f"the largest row group has {max(sizes):,} rows, {largest / 1e6:,.0f} MB in memory;"
                f" at most {MOST_BYTES / 1e6:,.0f} MB are read at once.\n"
                f"  Write the files with row_group_size={max(1, LARGEST_BLOCK_BYTES // row_bytes)}."
            )
        self.group = int(max(1, min(GROUP, MOST_BYTES // largest)))
        self._kept: dict[int, Array] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(self.columns)

    def take(self, rows: Array) -> Array:
        """Read these rows, in this order; row groups in memory are not read again."""
        out = np.empty((rows.size, self.shape[1]), dtype=self.dtype)
        group_of = np.searchsorted(self._starts, rows, side="right") - 1
        for number in sorted(np.unique(group_of).tolist(), key=lambda n: n not in self._kept):
            selected = np.flatnonzero(group_of == number)
            out[selected] = self._block(number)[rows[selected] - self._starts[number]]
        return out

    def shuffled(self, rows: Array, generator: np.random.Generator) -> Array:
        """Shuffle the row groups, then the rows within each set of row groups in memory."""
        group_of = np.searchsorted(self._starts, rows, side="right") - 1
        groups, position = np.unique(group_of, return_inverse=True)
        if groups.size <= self.group:
            return np.asarray(rows[generator.permutation(rows.size)])
        order = generator.permutation(groups.size)[position] // self.group
        return np.asarray(rows[np.lexsort((generator.random(rows.size), order))])

    def _block(self, number: int) -> Array:
        if number in self._kept:
            block = self._kept.pop(number)
        else:
            while len(self._kept) >= self.group:
                self._kept.pop(next(iter(self._kept)))
            fragment, size = self._parts[number]
            block = np.empty((size, self.shape[1]), dtype=self.dtype)
            # One column at a time: Arrow keeps columns, and a second copy of all would be large.
            table = fragment.to_table(columns=self.columns, use_threads=False)
            for place, name in enumerate(self.columns):
                block[:, place] = table.column(name).to_numpy()
            block = as_floats(block, self.dtype)
        self._kept[number] = block
        return block


def _row_groups(source: Any) -> list[tuple[Any, int]]:
    parts: list[tuple[Any, int]] = []
    for fragment in source.get_fragments():
        if not hasattr(fragment, "split_by_row_group"):
            raise InvalidInputError(
                f"only datasets of Parquet files are read in parts, got {type(fragment).__name__}."
            )
        groups = fragment.split_by_row_group()
        parts += [(part, part.row_groups[0].num_rows) for part in groups]
    return [(part, size) for part, size in parts if size]


def _common_type(schema: Any, columns: list[str]) -> np.dtype[Any]:
    """Return float32 if it holds all columns exactly, else float64."""
    import pyarrow.types as types

    wide = False
    for name in columns:
        kind = schema.field(name).type
        if not (types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)):
            raise InvalidInputError(
                f"column {name!r} of the dataset holds values of type {kind}, not numbers.\n"
                f"  Leave it out with `columns`, or give it as y."
            )
        wide = wide or kind.bit_width > (32 if types.is_floating(kind) else 16)
    return np.dtype(np.float64 if wide else np.float32)
