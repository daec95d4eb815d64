"""Fingerprints of samples: 64 bits per row, by which a model knows its training samples again.

The fingerprint of a row is the first 8 bytes of the BLAKE2b hash of its values that are not 0 in
float32: their positions (int32) followed by the values, little-endian.  Dense, sparse, float64 and
integer samples with the same values have the same fingerprints.  In a file of n other rows a row is
found by accident with probability n / 2^64.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.samples.base import Samples
from ratoon.samples.on_disk_csr import DiskCsrRows

Fingerprints = NDArray[np.uint64]

MOST_VALUES = 2**26
"""Larger samples have no fingerprints: to hash them would take seconds."""

_BLOCK = 2**20
_N_BYTES = 8


MOST_OF_A_PART = 2**22
"""The same for the parts of a training by parts, which are hashed in every call."""


def n_values(x: Samples) -> int:
    """Return the number of values that are hashed."""
    return x.n_rows * x.n_features if x.n_stored is None else x.n_stored


def row_fingerprints(x: Samples) -> Fingerprints:
    """Return the fingerprint of every row.

    Examples
    --------
    >>> from ratoon.samples.in_memory import wrap
    >>> import scipy.sparse
    >>> rows = np.array([[0.5, 0.0, 2.0], [0.0, -0.0, 0.0]])
    >>> found = row_fingerprints(wrap(rows))
    >>> bool((found == row_fingerprints(wrap(scipy.sparse.csr_array(rows)))).all())
    True
    """
    texts = _sparse_texts(x) if x.is_sparse else _dense_texts(x)
    digests = (hashlib.blake2b(text, digest_size=_N_BYTES).digest() for text in texts)
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def _dense_texts(x: Samples) -> Iterator[bytes]:
    step = max(1, _BLOCK // max(x.n_features, 1))
    for first in range(0, x.n_rows, step):
        for row in _float32(x.dense(slice(first, first + step))):
            places = np.flatnonzero(row)
            yield places.astype("<i4").tobytes() + row[places].tobytes()


def _sparse_texts(x: Samples) -> Iterator[bytes]:
    parts = (part for _, part in x.parts()) if isinstance(x, DiskCsrRows) else iter([x.values()])
    for matrix in parts:
        values, bounds = _float32(matrix.data), matrix.indptr.tolist()
        for first, last in pairwise(bounds):
            row, places = values[first:last], matrix.indices[first:last]
            stored = np.flatnonzero(row)
            yield places[stored].astype("<i4").tobytes() + row[stored].tobytes()


def _float32(values: Array) -> Array:
    with np.errstate(over="ignore"):
        return values.astype("<f4", copy=False)


class RowSet:
    """A set of fingerprints that grows by samples.

    Examples
    --------
    >>> from ratoon.samples.in_memory import wrap
    >>> rows = RowSet()
    >>> rows.add(wrap([[1.0, 2.0], [3.0, 4.0]]))
    >>> rows.contains(wrap([[3.0, 4.0], [5.0, 6.0]])).tolist()
    [True, False]
    """

    def __init__(self, known: Fingerprints | None = None) -> None:
        self._sorted = np.empty(0, dtype=np.uint64) if known is None else known
        self._pending: list[Fingerprints] = []
        self._n_pending = 0

    def add(self, x: Samples) -> None:
        """Add the rows of samples."""
        found = row_fingerprints(x)
        found = found[~self._is_sorted_in(found)]
        if not found.size:
            return
        self._pending.append(found)
        self._n_pending += found.size
        if self._n_pending > max(self._sorted.size, 1024):  # few sorts, however small the parts
            self._merge()

    def contains(self, x: Samples) -> NDArray[np.bool_]:
        """Return for every row whether it is in the set."""
        self._merge()
        return self._is_sorted_in(row_fingerprints(x))

    @property
    def fingerprints(self) -> Fingerprints:
        """All fingerprints, increasing."""
        self._merge()
        return self._sorted

    def _merge(self) -> None:
        if self._pending:
            self._sorted = np.unique(np.concatenate((self._sorted, *self._pending)))
            self._pending, self._n_pending = [], 0

    def _is_sorted_in(self, found: Fingerprints) -> NDArray[np.bool_]:
        if not self._sorted.size:
            return np.zeros(found.size, dtype=bool)
        places = np.minimum(np.searchsorted(self._sorted, found), self._sorted.size - 1)
        return np.asarray(self._sorted[places] == found)
