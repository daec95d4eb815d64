"""Broadcast the layers and the training state of rank 0 to all ranks."""

from __future__ import annotations

import hashlib

import numpy as np

from ratoon.arrays import Array
from ratoon.distributed.communicator import Communicator
from ratoon.errors import RatoonError
from ratoon.layers import SparseLayer
from ratoon.storage import state_from_parts, state_to_parts
from ratoon.topology import Topology
from ratoon.training import Training


def share_training(communicator: Communicator, training: Training) -> None:
    """Continue on every rank where rank 0 is: network, optimizer state, history, early stopping."""
    values, arrays, networks = state_to_parts(training.state)
    values, arrays, n_networks = communicator.from_first((values, arrays, len(networks)))
    if communicator.rank != 0:
        network = training.network
        networks = [network, *(network.copy() for _ in range(n_networks - 1))]
    for network in networks:
        for layer in network.layers:
            share_layer(communicator, layer)
    if communicator.rank != 0:
        own = {name: array.copy() for name, array in arrays.items()}
        stopped = training.should_stop
        training.continue_from(state_from_parts(values, own, networks))
        training.should_stop |= stopped  # by a callback of this rank, for all ranks


def share_layer(communicator: Communicator, layer: SparseLayer) -> None:
    """Replace a layer by that of rank 0, array by array; indices are checked on the way."""
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
    received = array if array.size == size else np.empty(size, dtype=array.dtype)
    communicator.take_first(received)
    return received


def check_agreement(communicator: Communicator, layer: SparseLayer, name: str) -> None:
    """Raise unless every rank has the same connections and weights in this layer."""
    digest = hashlib.sha256(layer.topology.content_hash().encode())
    digest.update(layer.weights.data)
    mine = int.from_bytes(digest.digest()[:4], "little")
    summed = np.array([mine, mine * mine], dtype=np.float64)
    communicator.add(summed)
    # size * sum of squares = square of sum holds for equal numbers only.
    if communicator.size * summed[1] - summed[0] ** 2 > 1e-9 * summed[0] ** 2:
        raise RatoonError(
            f"ranks disagree about {name} after a rewiring.\n"
            f"  All must run the same version on the same instruction set (RATOON_ISA)."
        )
