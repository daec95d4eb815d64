"""SNFS, sparse momentum (Dettmers and Zettlemoyer, "Sparse Networks from Scratch", 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.errors import InvalidParameterError, check_fraction
from ratoon.evolution.allocate import split_in_proportion
from ratoon.evolution.base import (
    LayerState,
    ScheduledFraction,
    State,
    StatefulStrategy,
    layer_seed,
)
from ratoon.evolution.clock import Clock
from ratoon.evolution.grow import gradients_at, grow_largest_gradients, signals_of
from ratoon.evolution.prune import strongest
from ratoon.evolution.recent import RecentGradients, n_remembered
from ratoon.topology import Rewiring


@dataclass(frozen=True)
class SNFS(ScheduledFraction, StatefulStrategy):
    """Prune the weakest, move connections to layers with large momentum, grow where it is largest.

    Every layer prunes the fraction ``zeta(t)`` of its connections with the smallest ``|w|``.  The
    total is divided among layers in proportion to the mean ``|momentum|`` of their connections.
    Each layer grows at the empty positions where ``|M|`` is largest; M is the sum of the gradients
    of the last minibatches, k steps ago weighted by ``momentum ** k``.  New weights are 0.

    Parameters
    ----------
    zeta : float, default=0.5
        Fraction of a layer's connections pruned at the first rewiring: ``prune_rate`` in the
        released code.
    momentum : float, default=0.9
        Factor by which past gradients decay per step.
    max_columns : int or None, default=32
        Maximum number of samples to remember; None sets no limit.
    every : int, default=1
        Epochs between two rewirings.
    until : float, default=1.0
        Fraction of training after which the topology no longer changes.
    anneal : {"constant", "linear", "cosine"}, default="cosine"
        How zeta falls to 0 by then.

    Notes
    -----
    M is never stored as a dense matrix but as the activations and errors of the last minibatches,
    until they have decayed below one per cent (after 44 steps for a momentum of 0.9); this is
    exact up to that.  More than ``max_columns`` samples are compressed by dropping the smallest
    singular values (see `ratoon.evolution.recent`); this is an approximation.  With the default,
    99 % of the grown connections are those of the exact method at a batch of 5, and 85 to 90 % at
    a batch of 16 (TOX-171, two hidden layers of 1000).  Where a minibatch has more than 512 rows
    and the layer more than 512 inputs and outputs, the singular values are found with random
    projections.

    A layer that is full when training starts does not take part.

    Cost: one more forward and backward pass for each watched step; per rewiring the search of
    RigL with at most ``max_columns`` in place of the batch.  Memory: ``max_columns`` numbers per
    input and output of a layer, also between rewirings.

    Examples
    --------
    >>> SNFS().n_watched
    44
    """

    keeps = "total"

    zeta: float = 0.5
    momentum: float = 0.9
    max_columns: int | None = 32
    every: int = 1
    until: float = 1.0
    anneal: str = "cosine"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction("momentum", self.momentum, owner="SNFS")
        if self.max_columns is not None and self.max_columns < 2:
            raise InvalidParameterError(
                f"SNFS: `max_columns` must be at least 2 or None, got {self.max_columns!r}."
            )

    @property
    def n_watched(self) -> int:
        """The number of steps after which a gradient has decayed below one per cent."""
        return n_remembered(self.momentum)

    def start_state(self, layers: Sequence[LayerState], seed: int) -> State:
        """Return which layers take part, and no gradients."""
        del seed
        state: State = {"takes_part": np.array([not layer.is_full for layer in layers])}
        for index, layer in enumerate(layers):
            none = RecentGradients.empty(layer.topology.shape, layer.weights.dtype)
            state |= none.to_state(str(index))
        return state

    def watch(self, state: State, layers: Sequence[LayerState], clock: Clock) -> State:
        """Add the gradients of the next minibatch."""
        after = dict(state)
        for index, layer in enumerate(layers):
            if state["takes_part"][index]:
                recent = RecentGradients.from_state(state, str(index)).with_minibatch(
                    signals_of(layer),
                    clock.step,
                    mu=self.momentum,
                    max_columns=self.max_columns,
                )
                after |= recent.to_state(str(index))
        return after

    def rewire_from(
        self, state: State, layers: Sequence[LayerState], clock: Clock, seed: int
    ) -> tuple[list[Rewiring], State]:
        """Return one rewiring per layer, with the same total number of connections."""
        takes_part = state["takes_part"]
        pruned, momentum, limits = [], [], []
        for index, layer in enumerate(layers):
            n_connections = layer.topology.n_connections
            pruned.append(self.n_replaced(layer, clock) if takes_part[index] else 0)
            momentum.append(mean_momentum(layer, state, index) if takes_part[index] else 0.0)
            n_empty = layer.n_positions - n_connections + pruned[index]
            limits.append(n_empty if takes_part[index] else 0)
        grown = split_in_proportion(sum(pruned), momentum, limits)
        rewirings = []
        for index, layer in enumerate(layers):
            if pruned[index] == grown[index] == 0:
                rewirings.append(Rewiring.unchanged(layer.topology))
                continue
            kept = strongest(layer.weights, pruned[index])
            factors = RecentGradients.from_state(state, str(index)).factors
            rewirings.append(
                grow_largest_gradients(
                    layer, kept, int(grown[index]), layer_seed(seed, index), factors=factors
                )
            )
        return rewirings, state


def mean_momentum(layer: LayerState, state: State, index: int) -> float:
    """Return the mean magnitude of momentum over the connections of a layer.

    It is the momentum of the optimizer; if there is none, that of the remembered gradients.
    """
    if layer.topology.n_connections == 0:
        return 0.0
    momentum: NDArray[Any]
    if layer.state:
        momentum = layer.state[0]
    else:
        factors = RecentGradients.from_state(state, str(index)).factors
        momentum = gradients_at(factors, layer.topology.shape[1], layer.topology.positions)
    return float(np.abs(momentum).mean(dtype=np.float64))
