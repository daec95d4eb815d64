"""Moving a layer, and everything PyTorch stores per connection, to a new topology."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ratoon.evolution import Clock, InPlaceStrategy
from ratoon.layers import SparseLayer
from ratoon.topology import Rewiring
from ratoon.torch.connections import SparseConnections, resize

State = dict[Any, Any]

MOVED_IN_PLACE = 2
"""Maximum number of arrays besides the weights that the native rewiring moves; Adam has two."""


def per_connection(state: State, parameter: torch.Tensor) -> Iterator[tuple[Any, torch.Tensor]]:
    """Yield the name and tensor of all optimizer state with the shape of a parameter."""
    for name, kept in state.items():
        if isinstance(kept, torch.Tensor) and kept.shape == parameter.shape:
            yield name, kept


def carried(rewiring: Rewiring, old: torch.Tensor) -> torch.Tensor:
    """Return a tensor of any type in the order of the new slots; new connections get 0."""
    new = old[torch.from_numpy(np.maximum(rewiring.origin, 0))]
    new[torch.from_numpy(rewiring.is_grown)] = 0
    return new


@torch.no_grad()
def apply_rewiring(module: SparseConnections, rewiring: Rewiring, state: State) -> None:
    """Change the topology of a module, with its weights and optimizer state.

    The parameter stays the same object, also when the number of connections changes.  Its gradient
    belongs to the old connections and has been used, so it is cleared.
    """
    values = module.values
    for name, kept in list(per_connection(state, values)):
        new = carried(rewiring, kept)
        if new.shape == kept.shape:
            kept.copy_(new)
        else:
            state[name] = new
    weights = torch.from_numpy(rewiring.carry_weights(values.numpy()))
    if weights.shape == values.shape:
        values.copy_(weights)
    else:
        resize(values, weights)
    values.grad = None
    module.topology = rewiring.topology


@torch.no_grad()
def rewire_in_place(
    module: SparseConnections, strategy: InPlaceStrategy, clock: Clock, seed: int, state: State
) -> int:
    """Rewire a module natively, without copying; return the number of new connections."""
    values = module.values
    moved = [kept for _, kept in per_connection(state, values)]
    layer = SparseLayer(
        module.topology,
        values.numpy(),
        np.empty(0, dtype=values.numpy().dtype),
        init=module.init,
        state=[tensor.numpy() for tensor in moved],
    )
    n_grown = strategy.rewire_in_place(layer, clock, seed, torch.get_num_threads())
    # PyTorch did not see the change; a graph that still needs the old values must detect it.
    for tensor in (values, *moved):
        torch.autograd.graph.increment_version(tensor)
    values.grad = None
    module.topology = layer.topology
    return n_grown


def can_move_in_place(module: SparseConnections, state: State) -> bool:
    """Whether values and optimizer state are few contiguous CPU tensors of one type."""
    moved = [kept for _, kept in per_connection(state, module.values)]
    return len(moved) <= MOVED_IN_PLACE and all(
        tensor.dtype == module.values.dtype
        and tensor.is_contiguous()
        and tensor.device.type == "cpu"
        for tensor in (module.values, *moved)
    )


def signals_of(module: SparseConnections) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the activations and errors recorded in a module since the last step."""
    inputs, errors = zip(*module.handle.recorded, strict=True)
    if len(inputs) == 1:
        return inputs[0], errors[0]
    return np.concatenate(inputs, axis=1), np.concatenate(errors, axis=1)
