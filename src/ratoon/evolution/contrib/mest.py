"""MEST, Memory-Economic Sparse Training (Yuan et al., NeurIPS 2021)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import InvalidParameterError
from ratoon.evolution.base import (
    Keeps,
    LayerState,
    ScheduledFraction,
    State,
    StatefulStrategy,
    layer_seed,
)
from ratoon.evolution.clock import Clock, RewiringSchedule
from ratoon.evolution.grow import (
    gradients_at,
    grow_largest_gradients,
    grow_uniformly,
    retiled,
    signals_of,
)
from ratoon.evolution.prune import strongest
from ratoon.topology import IntArray, Rewiring

GROWTHS = ("random", "gradient")
MEMORY_BOUNDS = ("hard", "soft")


@dataclass(frozen=True)
class MEST(ScheduledFraction, StatefulStrategy):
    """Prune by weight and gradient, grow at random; optionally grow before pruning.

    The importance of a connection is ``|w| + gradient_weight * |g|``, where g is the gradient of
    the next minibatch.  With n0 the number of connections of a layer at the start and
    ``c = round(zeta(t) * n0)``, a rewiring prunes the least important connections and grows c new
    ones with weights of 0:

    * ``memory="hard"`` prunes to ``n0 - c``, so that the layer always has n0 connections;
    * ``memory="soft"`` prunes to n0, so that the layer has ``n0 + c`` until the next rewiring and
      a new connection competes with the others only once it has been trained.  The last rewiring
      grows none, so that the network ends with n0.

    Parameters
    ----------
    zeta : float, default=0.3
        Fraction of a layer's connections replaced at the first rewiring.
    gradient_weight : float, default=0.01
        Weight of the gradient in the importance (lambda in the paper).
    growth : {"random", "gradient"}, default="random"
        Where to grow: at random as in the paper, or where the gradient is largest as in `RigL`.
    memory : {"hard", "soft"}, default="hard"
        Whether the number of connections is constant, or is exceeded by the fraction ``zeta(t)``
        between two rewirings.
    every : int, default=1
        Epochs between two rewirings; 5 of 160 in the paper.
    until : float, default=0.75
        Fraction of training after which the topology no longer changes.
    anneal : {"constant", "linear", "cosine"}, default="cosine"
        How zeta falls to 0 by then.

    Notes
    -----
    In a layer that is full or nearly full at the start, ``memory="soft"`` grows as many as there
    are positions.  A layer that is full at the start does not change.

    Cost per rewiring: one gradient per connection, and about 50 nanoseconds per connection; with
    ``growth="gradient"`` also the search of `RigL`.  Memory for one more array of slots.

    Examples
    --------
    >>> MEST(memory="soft").peak
    1.3
    """

    zeta: float = 0.3
    gradient_weight: float = 0.01
    growth: str = "random"
    memory: str = "hard"
    every: int = 1
    until: float = 0.75
    anneal: str = "cosine"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.gradient_weight < math.inf:
            raise InvalidParameterError(
                f"MEST: `gradient_weight` must not be negative, got {self.gradient_weight!r}."
            )
        for name, known in (("growth", GROWTHS), ("memory", MEMORY_BOUNDS)):
            if getattr(self, name) not in known:
                raise InvalidParameterError(
                    f"MEST: `{name}` must be one of {known}, got {getattr(self, name)!r}."
                )

    @property
    def keeps(self) -> Keeps:  # type: ignore[override]
        """What is promised about the number of connections."""
        return "budget" if self.memory == "soft" else "layer"

    def budget(self, start: Sequence[LayerState], clock: Clock) -> list[int]:
        """Return the number of connections of every layer after a rewiring at this time."""
        counts = [layer.topology.n_connections for layer in start]
        if self.memory == "hard":
            return counts
        return [
            count if layer.is_full else count + self.n_grown(layer, count, clock)
            for layer, count in zip(start, counts, strict=True)
        ]

    @property
    def peak(self) -> float:
        """The largest number of connections during training, as a multiple of that at the start."""
        return 1.0 + self.zeta if self.memory == "soft" else 1.0

    def start_state(self, layers: Sequence[LayerState], seed: int) -> State:
        """Return the number of connections per layer, which is the budget."""
        del seed
        return {"budget": np.array([layer.topology.n_connections for layer in layers])}

    def rewire_from(
        self, state: State, layers: Sequence[LayerState], clock: Clock, seed: int
    ) -> tuple[list[Rewiring], State]:
        """Return one rewiring per layer."""
        rewirings = [
            self._rewired(layer, int(budget), clock, layer_seed(seed, index))
            for index, (layer, budget) in enumerate(zip(layers, state["budget"], strict=True))
        ]
        return rewirings, state

    def n_grown(self, layer: LayerState, budget: int, clock: Clock) -> int:
        """Return the number of connections to grow in a layer at this time."""
        count = round(self.fraction(clock) * budget)
        if self.memory == "hard":
            return count
        return 0 if is_last(self.schedule, clock) else min(count, layer.n_positions - budget)

    def _rewired(self, layer: LayerState, budget: int, clock: Clock, seed: int) -> Rewiring:
        if budget >= layer.n_positions:
            return Rewiring.unchanged(layer.topology)
        n_grown = self.n_grown(layer, budget, clock)
        n_left = budget - n_grown if self.memory == "hard" else budget
        kept = self._kept(layer, layer.topology.n_connections - n_left)
        grow = grow_uniformly if self.growth == "random" else grow_largest_gradients
        rewiring = grow(layer, kept, n_grown, seed)
        return retiled(rewiring) if self.memory == "soft" else rewiring

    def _kept(self, layer: LayerState, n_pruned: int) -> IntArray:
        if n_pruned <= 0:
            return np.arange(layer.topology.n_connections)
        return strongest(importance(layer, self.gradient_weight), n_pruned)


def importance(layer: LayerState, gradient_weight: float) -> Array:
    """Return ``|w| + gradient_weight * |g|`` of every connection.

    Examples
    --------
    >>> from ratoon.topology import Topology
    >>> signals = np.array([[2.0], [1.0]]), np.array([[3.0], [-2.0]])
    >>> layer = LayerState(
    ...     Topology.from_pairs((2, 2), [0, 1], [0, 1]),
    ...     np.array([0.5, -1.0]),
    ...     signals=lambda: signals,
    ... )
    >>> importance(layer, 0.1)
    array([1.1, 1.2])
    """
    magnitudes = np.abs(layer.weights)
    if gradient_weight == 0.0:
        return magnitudes
    topology = layer.topology
    gradients = gradients_at(signals_of(layer), topology.shape[1], topology.positions)
    np.abs(gradients, out=gradients)
    gradients *= gradients.dtype.type(gradient_weight)
    magnitudes += gradients
    return magnitudes


def is_last(schedule: RewiringSchedule, clock: Clock) -> bool:
    """Return whether no rewiring follows the one at this time.

    Examples
    --------
    >>> [is_last(RewiringSchedule(until=0.5), Clock(step, 10, 60)) for step in (10, 20, 30)]
    [False, False, True]
    """
    following = clock.step + schedule.interval(clock)
    return following >= clock.total_steps or following > schedule.until * clock.total_steps
