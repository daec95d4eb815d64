"""Carry: bring a layer and everything PyTorch keeps per connection over to a new topology."""

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
"""Arrays besides the weights that the native rewiring moves along: Adam has as many."""


def per_connection(state: State, parameter: torch.Tensor) -> Iterator[tuple[Any, torch.Tensor]]:
    """Yield name and tensor of all that an optimizer keeps in the shape of a parameter."""
    for name, kept in state.items():
        if isinstance(kept, torch.Tensor) and kept.shape == parameter.shape:
            yield name, kept


def carried(rewiring: Rewiring, old: torch.Tensor) -> torch.Tensor:
    """Return a tensor by the new slots, whatever its number type; new connections get 0."""
    new = old[torch.from_numpy(np.maximum(rewiring.origin, 0))]
    new[torch.from_numpy(rewiring.is_grown)] = 0
    return new


@torch.no_grad()
def apply_rewiring(module: SparseConnections, rewiring: Rewiring, state: State) -> None:
    """Give a module its next topology; weights and optimizer state come along.

    The parameter stays the same object, also when the number of connections changes.  Its gradient
    was that of other connections, and has been used: it is cleared.
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
    """Let a strategy do the same where the numbers lie in memory."""
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
    # PyTorch did not see that, and a graph that still needs the old values must be told.
    for tensor in (values, *moved):
        torch.autograd.graph.increment_version(tensor)
    values.grad = None
    module.topology = layer.topology
    return n_grown


def can_move_in_place(module: SparseConnections, state: State) -> bool:
    """Whether all there is to move are few plain arrays of one number type."""
    moved = [kept for _, kept in per_connection(state, module.values)]
    return len(moved) <= MOVED_IN_PLACE and all(
        tensor.dtype == module.values.dtype
        and tensor.is_contiguous()
        and tensor.device.type == "cpu"
        for tensor in (module.values, *moved)
    )


def signals_of(module: SparseConnections) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return activations and errors that flowed through a module since the last step."""
    inputs, errors = zip(*module.handle.heard, strict=True)
    if len(inputs) == 1:
        return inputs[0], errors[0]
    return np.concatenate(inputs, axis=1), np.concatenate(errors, axis=1)
