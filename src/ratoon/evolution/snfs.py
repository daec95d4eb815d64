"""SNFS, sparse momentum (Dettmers and Zettlemoyer, "Sparse Networks from Scratch", 2019).

After every epoch each layer lets go of its weakest connections.  What all layers let go together is
given to them anew, in proportion to the mean momentum of their connections, and grown where the
momentum of absent connections is largest.  The total never changes; layers do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.errors import InvalidParameterError, check_fraction
from ratoon.evolution.allocate import shares
from ratoon.evolution.base import LayerState, State, StatefulStrategy, layer_seed
from ratoon.evolution.clock import Clock, RewiringSchedule
from ratoon.evolution.grow import gradients_at, grow_largest_gradients, signals_of
from ratoon.evolution.prune import strongest
from ratoon.evolution.recent import RecentGradients, n_remembered
from ratoon.topology import Rewiring


@dataclass(frozen=True)
class SNFS(StatefulStrategy):
    """Prune the weakest, share out by the layers' momentum, grow where momentum is largest.

    Momentum at absent positions would be a dense matrix.  It is kept as the activations and errors
    of the last minibatches, until they have faded below one per cent (44 of them for a momentum of
    0.9): exact up to that.  Samples beyond ``max_columns`` are squeezed into fewer columns by
    dropping the smallest singular values (see `ratoon.evolution.recent`): then an approximation.
    With the default, 99 % of the connections it grows are those of the exact method at a batch of
    5, and 85 to 90 % at a batch of 16 (TOX-171, two hidden layers of 1000).

    A layer that is full when training starts is left as it is.

    Cost: a forward and a backward pass more for each of the watched steps; per rewiring the search
    of RigL with at most ``max_columns`` in place of the batch.
    Memory: ``max_columns`` numbers per input and output of a layer, between rewirings too.

    Parameters
    ----------
    zeta : float, default=0.5
        Fraction of a layer's connections pruned at the first rewiring; ``prune_rate`` in the
        released code.
    momentum : float, default=0.9
        How much of the gradients' sum is left after a step.
    max_columns : int or None, default=32
        Samples to remember at most; None sets no limit.
    every, until, anneal
        Epochs between rewirings, the fraction of training after which they end, and how zeta
        goes to 0 by then.

    Examples
    --------
    >>> SNFS().n_watched
    44
    """

    zeta: float = 0.5
    momentum: float = 0.9
    max_columns: int | None = 32
    every: int = 1
    until: float = 1.0
    anneal: str = "cosine"

    def __post_init__(self) -> None:
        check_fraction("zeta", self.zeta, owner="SNFS")
        check_fraction("momentum", self.momentum, owner="SNFS")
        if self.max_columns is not None and self.max_columns < 2:
            raise InvalidParameterError(
                f"SNFS: `max_columns` must be at least 2 or None, got {self.max_columns!r}."
            )
        _ = self.schedule  # raises if its parts make none

    @property
    def schedule(self) -> RewiringSchedule:
        """Every few epochs, up to a point."""
        return RewiringSchedule(self.every, "epoch", self.until, self.anneal)

    @property
    def n_watched(self) -> int:
        """Until a gradient has faded below one per cent."""
        return n_remembered(self.momentum)

    def start_state(self, layers: Sequence[LayerState], seed: int) -> State:
        """Return that nothing has been seen, and which layers take part."""
        del seed
        state: State = {"takes_part": np.array([not layer.is_full for layer in layers])}
        for index, layer in enumerate(layers):
            nothing = RecentGradients.none(layer.topology.shape, layer.weights.dtype)
            state |= nothing.written(str(index))
        return state

    def watch(self, state: State, layers: Sequence[LayerState], clock: Clock) -> State:
        """Remember the minibatch that is about to be trained on."""
        after = dict(state)
        for index, layer in enumerate(layers):
            if state["takes_part"][index]:
                recent = RecentGradients.read(state, str(index)).seen(
                    signals_of(layer),
                    clock.step,
                    mu=self.momentum,
                    max_columns=self.max_columns,
                )
                after |= recent.written(str(index))
        return after

    def rewire_from(
        self, state: State, layers: Sequence[LayerState], clock: Clock, seed: int
    ) -> tuple[list[Rewiring], State]:
        """Return one rewiring per layer, with as many connections in all as before."""
        zeta = self.zeta * self.schedule.factor(clock)
        takes_part = state["takes_part"]
        pruned, momentum, room = [], [], []
        for index, layer in enumerate(layers):
            n_connections = layer.topology.n_connections
            pruned.append(round(zeta * n_connections) if takes_part[index] else 0)
            momentum.append(mean_momentum(layer, state, index) if takes_part[index] else 0.0)
            n_empty = layer.n_positions - n_connections + pruned[index]
            room.append(n_empty if takes_part[index] else 0)
        grown = shares(sum(pruned), momentum, room)
        rewirings = []
        for index, layer in enumerate(layers):
            if pruned[index] == grown[index] == 0:
                rewirings.append(Rewiring.unchanged(layer.topology))
                continue
            kept = strongest(layer.weights, pruned[index])
            factors = RecentGradients.read(state, str(index)).factors
            rewirings.append(
                grow_largest_gradients(
                    layer, kept, int(grown[index]), layer_seed(seed, index), factors=factors
                )
            )
        return rewirings, state


def mean_momentum(layer: LayerState, state: State, index: int) -> float:
    """Return the mean magnitude of momentum over a layer's connections.

    The optimizer's own where it keeps one, else that of the gradients remembered.
    """
    if layer.topology.n_connections == 0:
        return 0.0
    momentum: NDArray[Any]
    if layer.state:
        momentum = layer.state[0]
    else:
        factors = RecentGradients.read(state, str(index)).factors
        momentum = gradients_at(factors, layer.topology.shape[1], layer.topology.positions)
    return float(np.abs(momentum).mean(dtype=np.float64))
