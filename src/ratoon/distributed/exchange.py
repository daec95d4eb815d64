"""A layer of rank 0 becomes that of all ranks, array by array: nothing is pickled or held twice."""

from __future__ import annotations

import hashlib

import numpy as np

from ratoon.arrays import Array
from ratoon.distributed.communicator import Communicator
from ratoon.errors import RatoonError
from ratoon.layers import SparseLayer
from ratoon.topology import Topology


def share_layer(communicator: Communicator, layer: SparseLayer) -> None:
    """Make a layer what it is on rank 0; indices are checked on the way."""
    old = layer.topology
    shape, tile, grouped, sizes = communicator.from_first(
        (old.shape, old.tile, old.grouped, (old.starts.size, old.packed.size))
    )
    first = communicator.rank == 0
    starts: Array = np.array(old.starts) if first else np.empty(sizes[0], old.starts.dtype)
    packed: Array = np.array(old.packed) if first else np.empty(sizes[1], old.packed.dtype)
    communicator.take_first(starts)
    communicator.take_first(packed)
    if not first:
        layer.topology = Topology.checked(shape, tile, grouped, starts, packed)
    layer.weights = _shared(communicator, layer.weights, packed.size)
    layer.bias = _shared(communicator, layer.bias, shape[1])
    layer.state = [_shared(communicator, array, packed.size) for array in layer.state]
    layer.bias_state = [_shared(communicator, array, shape[1]) for array in layer.bias_state]


def _shared(communicator: Communicator, array: Array, size: int) -> Array:
    room = array if array.size == size else np.empty(size, dtype=array.dtype)
    communicator.take_first(room)
    return room


def check_agreement(communicator: Communicator, layer: SparseLayer, name: str) -> None:
    """Raise unless every rank has the same connections and weights in this layer."""
    digest = hashlib.sha256(layer.topology.content_hash().encode())
    digest.update(layer.weights.data)
    mine = int.from_bytes(digest.digest()[:4], "little")
    summed = np.array([mine, mine * mine], dtype=np.float64)
    communicator.add(summed)
    # Equal numbers, and only those, have size * sum of squares = square of sum.
    if communicator.size * summed[1] - summed[0] ** 2 > 1e-9 * summed[0] ** 2:
        raise RatoonError(
            f"ranks disagree about {name} after a rewiring.\n"
            f"  All must run the same version on the same instruction set (RATOON_ISA)."
        )
