"""GraNet, gradual pruning with zero-cost neuroregeneration (Liu et al., NeurIPS 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ratoon.errors import InvalidParameterError
from ratoon.evolution.base import LayerState, ScheduledFraction, State, StatefulStrategy, layer_seed
from ratoon.evolution.clock import Clock
from ratoon.evolution.grow import grow_largest_gradients, retiled
from ratoon.evolution.prune import strongest
from ratoon.topology import IntArray, Rewiring

SCOPES = ("network", "layer")


@dataclass(frozen=True)
class GraNet(ScheduledFraction, StatefulStrategy):
    """Prune gradually from a denser start, and regrow a fraction where the gradient is largest.

    The density of the estimator is that of the start; training ends with the fraction ``final`` of
    those connections.  The number of connections falls along a cubic curve: with p the completed
    fraction of training, it is ``final + (1 - final) * (1 - p / prune_until) ** 3`` times the
    number at the start until ``prune_until``, and ``final`` times that number from there on.

    A rewiring prunes the weakest connections to the number of the curve.  Then every layer prunes
    the fraction ``zeta(t)`` of its remaining connections with the smallest ``|w|`` and grows as
    many at the empty positions with the largest gradient, with weights of 0, as `RigL`.

    Parameters
    ----------
    final : float, default=0.1
        Connections at the end, as a fraction of those at the start.
    zeta : float, default=0.5
        Fraction of the remaining connections replaced at the first rewiring.
    scope : {"network", "layer"}, default="network"
        Whether weights of all layers are compared when pruning, or every layer is pruned to the
        same fraction of its connections.
    prune_until : float, default=0.7
        Fraction of training after which the number of connections is constant; 110 of 160 epochs
        in the paper.  At most ``until``.
    every : int, default=10
        Thousandths of training between two rewirings, rounded up to whole steps.
    until : float, default=1.0
        Fraction of training after which the topology no longer changes.
    anneal : {"constant", "linear", "cosine"}, default="cosine"
        How zeta falls to 0 by then.

    Notes
    -----
    A layer may be full at the start.  It always keeps its strongest connection.  With warm starts,
    every training prunes to ``final`` of the connections that it starts with.  A rewiring takes
    place only at the interval ``every``, so the final number is reached at the first rewiring
    after ``prune_until``; with ``until`` equal to ``prune_until`` this may be none.

    Cost per rewiring: about 30 nanoseconds per connection and the search of `RigL`; memory for the
    magnitudes of all weights.

    Examples
    --------
    >>> granet = GraNet(final=0.2, prune_until=0.8)
    >>> [round(granet.level(progress), 2) for progress in (0.0, 0.2, 0.4, 0.8, 1.0)]
    [1.0, 0.54, 0.3, 0.2, 0.2]
    """

    unit = "permille"
    keeps = "budget"
    rewires_full_layers = True

    final: float = 0.1
    zeta: float = 0.5
    scope: str = "network"
    prune_until: float = 0.7
    every: int = 10
    until: float = 1.0
    anneal: str = "cosine"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.final <= 1.0:
            raise InvalidParameterError(f"GraNet: `final` must be in (0, 1], got {self.final!r}.")
        if self.scope not in SCOPES:
            raise InvalidParameterError(
                f"GraNet: `scope` must be one of {SCOPES}, got {self.scope!r}."
            )
        if not 0.0 < self.prune_until <= self.until:
            raise InvalidParameterError(
                f"GraNet: `prune_until` must be in (0, until], got {self.prune_until!r} with"
                f" until={self.until!r}."
            )

    def level(self, progress: float) -> float:
        """Return the target number of connections, as a fraction of the number at the start."""
        left = max(0.0, 1.0 - progress / self.prune_until)
        return self.final + (1.0 - self.final) * left**3

    def budget(self, start: Sequence[LayerState], clock: Clock) -> list[int] | int:
        """Return the number of connections after a rewiring at this time."""
        level, counts = self.level(clock.progress), [s.topology.n_connections for s in start]
        if self.scope == "layer":
            return [max(1, round(level * count)) if count else 0 for count in counts]
        return max(round(level * sum(counts)), sum(count > 0 for count in counts))

    def start_state(self, layers: Sequence[LayerState], seed: int) -> State:
        """Return the number of connections per layer at the start."""
        del seed
        return {"start_counts": np.array([layer.topology.n_connections for layer in layers])}

    def rewire_from(
        self, state: State, layers: Sequence[LayerState], clock: Clock, seed: int
    ) -> tuple[list[Rewiring], State]:
        """Return one rewiring per layer, to the number of connections given by the curve."""
        level = self.level(clock.progress)
        counts = state["start_counts"]
        if self.scope == "layer":
            kept = [
                strongest(layer.weights, layer.weights.size - max(1, round(level * int(count))))
                for layer, count in zip(layers, counts, strict=True)
            ]
        else:
            kept = strongest_of_all(layers, round(level * int(counts.sum())))
        rewirings = [
            self._regrown(layer, slots, clock, layer_seed(seed, index))
            for index, (layer, slots) in enumerate(zip(layers, kept, strict=True))
        ]
        return rewirings, state

    def _regrown(self, layer: LayerState, kept: IntArray, clock: Clock, seed: int) -> Rewiring:
        """Replace the weakest of the kept slots by connections with large gradients."""
        count = round(self.fraction(clock) * kept.size)
        if count == 0 and kept.size == layer.topology.n_connections:
            return Rewiring.unchanged(layer.topology)
        kept = kept[strongest(layer.weights[kept], count)]
        return retiled(grow_largest_gradients(layer, kept, count, seed))


def strongest_of_all(layers: Sequence[LayerState], n_left: int) -> list[IntArray]:
    """Return the slots left in every layer after pruning the smallest magnitudes of all layers.

    The strongest connection of every layer is kept, also if more than ``n_left`` are left then.

    Examples
    --------
    >>> from ratoon.topology import Topology
    >>> sides = ([3.0, -0.2, 2.0], [0.1, 0.3])
    >>> layers = [
    ...     LayerState(Topology.from_pairs((1, len(w)), [0] * len(w), range(len(w))), np.array(w))
    ...     for w in sides
    ... ]
    >>> [slots.tolist() for slots in strongest_of_all(layers, 3)]
    [[0, 2], [1]]
    """
    sizes = [layer.weights.size for layer in layers]
    magnitudes = np.concatenate([np.abs(layer.weights) for layer in layers])
    ends = np.cumsum(sizes)
    for first, last in zip(ends - sizes, ends, strict=True):
        if last > first:
            magnitudes[first + np.argmax(magnitudes[first:last])] = np.inf
    n_left = max(n_left, sum(size > 0 for size in sizes))
    kept = strongest(magnitudes, magnitudes.size - n_left)
    parts = np.split(kept, np.searchsorted(kept, ends[:-1]))
    return [part - first for part, first in zip(parts, ends - sizes, strict=True)]
