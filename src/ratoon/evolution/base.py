"""What every evolution strategy is given, and what it must give back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ratoon.arrays import Array
from ratoon.evolution.clock import Clock, RewiringSchedule
from ratoon.layers import SparseLayer
from ratoon.rng import derive_seed
from ratoon.topology import Rewiring, Topology

Signals = tuple[Array, Array]
"""Activations (n_in, batch) and errors (n_out, batch) of a layer for one minibatch."""

State = dict[str, Array]
"""What a strategy remembers between rewirings: named arrays, so that any file can hold them."""


@dataclass(frozen=True, eq=False)
class LayerState:
    """What a strategy may look at: read-only, and never a dense matrix.

    Parameters
    ----------
    topology : Topology
        The connections as they are.
    weights : ndarray
        Their weights.
    state : tuple of ndarray
        What the optimizer keeps per connection: momentum, or Adam's two moments.
    init : str
        How first weights of this layer are drawn (see `ratoon.initialise.weight_scale`).
    signals : callable, optional
        Returns activations and errors of the minibatch that comes next, computed when called.
        The gradient at position (i, j) is ``activations[i] @ errors[j]``.
    n_threads : int
        Threads that kernels may use; results do not depend on it.
    learning_rate : float
        Of the step that comes next.
    allowed : Topology, optional
        Where connections may be, if that is limited.  Growth must keep to it.
    """

    topology: Topology
    weights: Array
    state: tuple[Array, ...] = ()
    init: str = "he"
    signals: Callable[[], Signals] | None = None
    n_threads: int = 1
    learning_rate: float = 0.0
    allowed: Topology | None = None

    @property
    def n_positions(self) -> int:
        """How many connections the layer may have."""
        return self.topology.n_positions if self.allowed is None else self.allowed.n_connections

    @property
    def is_full(self) -> bool:
        """Whether nothing can be grown."""
        return self.topology.n_connections >= self.n_positions


@dataclass(frozen=True, eq=False)
class Reweighted(Rewiring):
    """A rewiring that also changes the weights of connections that stay.

    ``new_weights`` holds the weight of every connection of the new topology, by slot.
    """

    new_weights: Array | None = None

    def carry_weights(self, weights: Array) -> Array:
        """Return the weights as the strategy wants them."""
        return super().carry_weights(weights) if self.new_weights is None else self.new_weights


class Strategy(Protocol):
    """A rule that says when and how the layers of a network rewire."""

    @property
    def schedule(self) -> RewiringSchedule:
        """When to rewire."""
        ...

    def rewire(self, layers: Sequence[LayerState], clock: Clock, seed: int) -> list[Rewiring]:
        """Return one rewiring per layer; change nothing in place."""
        ...


@runtime_checkable
class InPlaceStrategy(Protocol):
    """A strategy that also has a faster way, with the very same result."""

    def rewire_in_place(self, layer: SparseLayer, clock: Clock, seed: int, n_threads: int) -> int:
        """Rewire one layer and return how many connections are new."""
        ...


class LayerwiseStrategy(ABC):
    """For strategies that look at one layer at a time."""

    @property
    @abstractmethod
    def schedule(self) -> RewiringSchedule:
        """When to rewire."""

    def rewire(self, layers: Sequence[LayerState], clock: Clock, seed: int) -> list[Rewiring]:
        """Rewire every layer that is not full, each with random numbers of its own."""
        return [
            Rewiring.unchanged(layer.topology)
            if layer.is_full
            else self.rewire_layer(layer, clock, layer_seed(seed, index))
            for index, layer in enumerate(layers)
        ]

    @abstractmethod
    def rewire_layer(self, layer: LayerState, clock: Clock, seed: int) -> Rewiring:
        """Return the next topology of ``layer``, which is itself left untouched."""


class StatefulStrategy(ABC):
    """For strategies that remember something from one rewiring to the next.

    A strategy itself never changes.  What it remembers is a `State` that it is handed and hands
    back; whoever trains keeps it, and saves it with the network.

    ``n_watched`` steps before every rewiring, `watch` is called before each step with the signals
    of its minibatch at hand.
    """

    @property
    @abstractmethod
    def schedule(self) -> RewiringSchedule:
        """When to rewire."""

    @property
    def n_watched(self) -> int:
        """How many steps before a rewiring to watch."""
        return 0

    @abstractmethod
    def start_state(self, layers: Sequence[LayerState], seed: int) -> State:
        """Return what there is to remember before the first step."""

    @abstractmethod
    def rewire_from(
        self, state: State, layers: Sequence[LayerState], clock: Clock, seed: int
    ) -> tuple[list[Rewiring], State]:
        """Return one rewiring per layer and the state after it; change nothing in place."""

    def watch(self, state: State, layers: Sequence[LayerState], clock: Clock) -> State:
        """Take note of a minibatch that is about to be trained on; return the state after it."""
        del layers, clock
        return state

    def rewire(self, layers: Sequence[LayerState], clock: Clock, seed: int) -> list[Rewiring]:
        """Rewire as if nothing had happened before."""
        return self.rewire_from(self.start_state(layers, seed), layers, clock, seed)[0]


def start_state(strategy: Strategy, layers: Sequence[LayerState], seed: int) -> State:
    """Return what any strategy remembers before the first step: nothing, for most."""
    if isinstance(strategy, StatefulStrategy):
        return strategy.start_state(layers, seed)
    return {}


def rewire_from(
    strategy: Strategy, state: State, layers: Sequence[LayerState], clock: Clock, seed: int
) -> tuple[list[Rewiring], State]:
    """Rewire by any strategy, whether it remembers something or not."""
    if isinstance(strategy, StatefulStrategy):
        return strategy.rewire_from(state, layers, clock, seed)
    return strategy.rewire(layers, clock, seed), state


def watched_steps(strategy: Strategy, clock: Clock, stop: int) -> list[int]:
    """Return the steps from the clock's on, below ``stop``, that a strategy wants to watch.

    Examples
    --------
    >>> from ratoon.evolution import SET
    >>> watched_steps(SET(), Clock(0, 10, 20), 10)
    []
    """
    n_watched = strategy.n_watched if isinstance(strategy, StatefulStrategy) else 0
    if n_watched == 0:
        return []
    due = strategy.schedule.due_steps(clock, min(stop + n_watched, clock.total_steps))
    wanted = {step for last in due for step in range(last - n_watched, last)}
    return sorted(step for step in wanted if clock.step <= step < stop)


def layer_seed(seed: int, index: int) -> int:
    """Return the seed of one layer at one rewiring."""
    return derive_seed(seed, "rewire layer", index)
