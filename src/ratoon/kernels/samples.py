"""Samples for native code: in memory as a whole, or read from disk in chunks of minibatches.

Training and prediction in chunks give what the same rows in memory would give.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ratoon import _native
from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.samples.augment import Augment
from ratoon.samples.base import Rows
from ratoon.samples.in_memory import DenseSamples, wrap
from ratoon.samples.on_disk import COMPACT, DiskRows, is_readable


@dataclass(frozen=True, eq=False)
class Chunk:
    """Samples in memory and the order to take them in.

    ``rows`` are the rows they have among all samples, or None if these are all samples.
    """

    handle: _native.Samples
    order: Rows
    rows: Rows | None = None

    def select(self, values: Array | None) -> Array | None:
        """Return the targets, weights or offsets of these samples."""
        return values if values is None or self.rows is None else values[self.rows]


class NativeSamples(ABC):
    """Samples that `NativeNetwork` trains on and predicts; made by `as_samples`."""

    n_rows: int
    n_features: int

    def shuffled(self, rows: Rows, generator: np.random.Generator) -> Rows:
        """Return these rows in a random order, for one epoch."""
        return rows[generator.permutation(rows.size)]

    @abstractmethod
    def chunk(self, order: Rows) -> Chunk:
        """Return the samples of ``order`` as one chunk."""

    @abstractmethod
    def chunks(self, order: Rows, batch: int) -> Iterator[Chunk]:
        """Yield the samples of ``order`` in chunks of whole minibatches."""

    @abstractmethod
    def blocks(self) -> Iterator[tuple[slice, _native.Samples]]:
        """Yield all samples in order: slices of rows, and the samples in them."""

    @abstractmethod
    def augmented(self, augment: Augment, seed: int) -> NativeSamples:
        """Return the same samples as images to train on, changed at random when they are read.

        The change of an image is a function of the seed and its row.
        """


class _InMemory(NativeSamples):
    def __init__(self, handle: _native.Samples) -> None:
        self.handle = handle
        self.n_rows, self.n_features = handle.n_rows, handle.n_features

    def chunk(self, order: Rows) -> Chunk:
        return Chunk(self.handle, order)

    def chunks(self, order: Rows, batch: int) -> Iterator[Chunk]:
        del batch
        yield self.chunk(order)

    def blocks(self) -> Iterator[tuple[slice, _native.Samples]]:
        yield slice(None), self.handle

    def augmented(self, augment: Augment, seed: int) -> NativeSamples:
        return _InMemory(_augmented(self.handle, augment, seed))


class _OnDisk(NativeSamples):
    def __init__(
        self, stored: DiskRows, dtype: DTypeLike, change: tuple[Augment, int] | None = None
    ) -> None:
        self.stored, self._dtype = stored, dtype
        self.n_rows, self.n_features = stored.shape
        self._change = change

    def shuffled(self, rows: Rows, generator: np.random.Generator) -> Rows:
        return self.stored.shuffled(rows, generator)

    def chunk(self, order: Rows) -> Chunk:
        handle = self._handle(self.stored[order])
        if self._change is not None:
            handle = _augmented(handle, *self._change, np.ascontiguousarray(order, np.int64))
        return Chunk(handle, np.arange(order.size, dtype=np.int64), order)

    def chunks(self, order: Rows, batch: int) -> Iterator[Chunk]:
        size = max(1, self.stored.rows_at_once // batch) * batch
        for first in range(0, order.size, size):
            yield self.chunk(order[first : first + size])

    def blocks(self) -> Iterator[tuple[slice, _native.Samples]]:
        for rows in self.stored.blocks():
            yield rows, self._handle(self.stored[rows])

    def augmented(self, augment: Augment, seed: int) -> NativeSamples:
        return _OnDisk(self.stored, self._dtype, (augment, seed))

    def _handle(self, rows: DiskRows) -> _native.Samples:
        values = rows.values()
        if rows.is_sparse:
            return _sparse_handle(values, self._dtype)
        return _native.Samples.dense(values)


def _augmented(
    handle: _native.Samples, augment: Augment, seed: int, numbers: Rows | None = None
) -> _native.Samples:
    resolved = augment.for_features(handle.n_features)
    try:
        return handle.augmented(*resolved.layout, resolved.shift or 0, resolved.flip, seed, numbers)
    except ValueError as error:
        raise InvalidInputError(f"the samples cannot be augmented: {error}.") from None


def as_samples(x: Any, dtype: DTypeLike) -> NativeSamples:
    """Return samples for a network of this number type.

    Dense arrays of float32, float64, and integers of 8 and 16 bits, memory maps included, are read
    where they are, whatever the number type of the network.  Samples on disk are read when they are
    used.  The values of sparse samples are converted to ``dtype``.

    Parameters
    ----------
    x : ratoon.samples.base.Samples, array or SciPy matrix
        Samples in rows; the indices of a SciPy matrix are checked.
    dtype : dtype
        Number type of the network.

    Raises
    ------
    InvalidInputError
        If a sparse matrix is damaged, or there are not two dimensions.
    """
    samples = wrap(x)
    if isinstance(samples, DiskRows):
        return _OnDisk(samples, dtype)
    if samples.is_sparse:
        return _InMemory(_sparse_handle(samples.values(), dtype))
    dense = samples.array if isinstance(samples, DenseSamples) else samples.values()
    if dense.dtype not in (np.dtype(np.float32), np.dtype(np.float64), *COMPACT):
        dense = dense.astype(dtype)
    if not is_readable(dense) and dense.size > 0:
        # NumPy calls an array of one feature contiguous whatever its stride, so always copy.
        dense = dense.copy(order="C")
    if dense.dtype == bool:
        dense = dense.view(np.uint8)
    return _InMemory(_native.Samples.dense(dense))


def _sparse_handle(matrix: Any, dtype: DTypeLike) -> _native.Samples:
    if max(matrix.shape) > np.iinfo(np.int32).max:
        raise InvalidInputError(f"sparse samples of shape {matrix.shape} are too large.")
    try:
        return _native.Samples.csr(
            np.array(matrix.indptr, dtype=np.int64),  # a copy that no other code can change
            np.ascontiguousarray(matrix.indices, dtype=np.int32),
            np.ascontiguousarray(matrix.data, dtype=dtype),
            matrix.shape[1],
        )
    except ValueError as error:
        raise InvalidInputError(f"the sparse samples cannot be used: {error}") from None
