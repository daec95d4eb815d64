"""Fingerprints of data: short texts that tell one training set from another."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import scipy.sparse

from ratoon import kernels
from ratoon.arrays import Array
from ratoon.layers import SparseLayer
from ratoon.network import SparseMLP
from ratoon.storage.values import pieces
from ratoon.topology import Topology
from ratoon.training import TrainingData

N_SUMS = 64
_SEED = 20180619  # any number, for ever the same


def fingerprint(*arrays: Any) -> str:
    """Return a SHA-256 over types, shapes and contents of arrays, dense or sparse, or None.

    Examples
    --------
    >>> fingerprint(np.zeros(3), None) == fingerprint(np.zeros(3), None)
    True
    >>> fingerprint(np.zeros(3)) == fingerprint(np.zeros((3, 1)))
    False
    """
    seen = hashlib.sha256()
    for array in arrays:
        if array is None:
            seen.update(b"none;")
        elif scipy.sparse.issparse(array):
            matrix = array.tocsr()
            seen.update(f"csr{matrix.shape};".encode())
            for part in (matrix.indptr, matrix.indices, matrix.data):
                _add(seen, part)
        else:
            _add(seen, np.asarray(array))
    return seen.hexdigest()


def describe_data(data: TrainingData, network: SparseMLP, n_threads: int) -> dict[str, Any]:
    """Return what tells training data apart, as plain values.

    The samples themselves may be anywhere, on disk too.  They are read once, through the same
    door as in training, and weighted sums over groups of features go into a hash: other samples,
    another order of samples or another scaling give another text.
    """
    return {
        "n_samples": data.n_samples,
        "rows": fingerprint(data.rows),
        "n_features": data.samples.n_features,
        "samples": fingerprint(_sums(data, network, n_threads)),
        "targets": fingerprint(data.targets),
        "weights": fingerprint(data.weights),
        "offset": fingerprint(data.offset),
    }


def _sums(data: TrainingData, network: SparseMLP, n_threads: int) -> Array:
    n_features, dtype = data.samples.n_features, network.dtype
    every = np.arange(n_features)
    topology = Topology.from_pairs((n_features, N_SUMS), every, every % N_SUMS)
    weights = kernels.normal(n_features, 1.0, dtype, seed=_SEED)
    layer = SparseLayer(topology, weights, np.zeros(N_SUMS, dtype=dtype))
    native = SparseMLP([layer]).native("squared_error", n_threads)
    return native.predict(data.samples, scaling=network.scaling)


def _add(seen: Any, array: Array) -> None:
    seen.update(f"{array.dtype.str}{array.shape};".encode())
    if array.dtype.kind in "OU":
        for item in array.ravel().tolist():
            text = str(item).encode("utf-8", "surrogatepass")
            seen.update(f"{len(text)};".encode())
            seen.update(text)
        return
    rows = array.reshape(1, -1) if array.ndim < 2 else array
    for row in rows:  # row by row, so that a memory map is never copied as a whole
        for piece in pieces(np.ascontiguousarray(row)):
            seen.update(piece.view(np.uint8).data)
