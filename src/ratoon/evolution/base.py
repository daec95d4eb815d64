"""Interfaces of evolution strategies: their input, their result and their schedule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from ratoon.arrays import Array
from ratoon.errors import check_field_types, check_fraction
from ratoon.evolution.clock import Clock, RewiringSchedule
from ratoon.layers import SparseLayer
from ratoon.rng import derive_seed
from ratoon.topology import Rewiring, Topology

Signals = tuple[Array, Array]
"""Activations (n_in, batch) and errors (n_out, batch) of a layer for one minibatch."""

State = dict[str, Array]
"""What a strategy remembers between rewirings: named arrays, which any file can hold."""


@dataclass(frozen=True, eq=False)
class LayerState:
    """A layer as a strategy sees it: read-only, and never a dense matrix.

    Parameters
    ----------
    topology : Topology
        The current connections.
    weights : ndarray
        Their weights, by slot.
    state : tuple of ndarray
        Optimizer state per connection: momentum, or the two moments of Adam.
    init : str
        How the initial weights of this layer are drawn (see `ratoon.initialise.weight_scale`).
    signals : callable, optional
        Returns activations and errors of the next minibatch, computed when called.
        The gradient at position (i, j) is ``activations[i] @ errors[j]``.
    n_threads : int
        Number of threads that kernels may use; results do not depend on it.
    learning_rate : float
        Learning rate of the next step.
    allowed : Topology, optional
        The positions where connections are allowed, if they are limited.  Growth must respect it.
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
        """The number of positions where connections are allowed."""
        return self.topology.n_positions if self.allowed is None else self.allowed.n_connections

    @property
    def is_full(self) -> bool:
        """Whether every allowed position is a connection, so that nothing can be grown."""
        return self.topology.n_connections >= self.n_positions


@dataclass(frozen=True, eq=False)
class Reweighted(Rewiring):
    """A rewiring that also changes the weights of kept connections.

    ``new_weights`` holds the weight of every connection of the new topology, by slot.
    """

    new_weights: Array | None = None

    def carry_weights(self, weights: Array) -> Array:
        """Return ``new_weights``, or the carried weights if it is None."""
        return super().carry_weights(weights) if self.new_weights is None else self.new_weights


class Strategy(Protocol):
    """A rule that decides when and how the layers of a network are rewired.

    Notes
    -----
    A layer in which every allowed position is a connection cannot grow.  Training and the
    strategies of this package leave such a layer unchanged, without a warning: at a density of 1
    a strategy has no effect.  `NeuronPruning`, which only prunes, and `NeST`, which also prunes,
    are the exceptions.
    """

    @property
    def schedule(self) -> RewiringSchedule:
        """When to rewire."""
        ...

    def rewire(self, layers: Sequence[LayerState], clock: Clock, seed: int) -> list[Rewiring]:
        """Return one rewiring per layer; change nothing in place."""
        ...


@runtime_checkable
class InPlaceStrategy(Protocol):
    """A strategy that also has a faster in-place implementation with the same result."""

    def rewire_in_place(self, layer: SparseLayer, clock: Clock, seed: int, n_threads: int) -> int:
        """Rewire one layer and return the number of new connections."""
        ...


class Scheduled:
    """Mixin that builds the schedule of a strategy from its fields.

    A subclass is a frozen dataclass.  It sets ``unit`` and declares those of the fields ``every``,
    ``until`` and ``anneal`` that its users may choose, with its own defaults.

    Parameters
    ----------
    every : int
        Interval between two rewirings, counted in ``unit``: epochs, steps, or thousandths of
        training.
    until : float
        Fraction of training after which the topology no longer changes.
    anneal : {"constant", "linear", "cosine"}
        How the replaced fraction falls to 0 by then; ``"constant"`` keeps it.
    """

    unit: ClassVar[str] = "epoch"
    every: int = 1
    until: float = 1.0
    anneal: str = "constant"

    def __post_init__(self) -> None:
        check_field_types(self)
        _ = self.schedule  # raises if a field is invalid

    @property
    def schedule(self) -> RewiringSchedule:
        """When to rewire."""
        return RewiringSchedule(self.every, self.unit, self.until, self.anneal)


class ScheduledFraction(Scheduled):
    """Mixin for scheduled strategies that replace the fraction ``zeta`` of a layer.

    Parameters
    ----------
    zeta : float
        Fraction of a layer's connections replaced at the first rewiring, in [0, 1).
    """

    zeta: float = 0.3

    def __post_init__(self) -> None:
        check_field_types(self)
        check_fraction("zeta", self.zeta, owner=type(self).__name__)
        super().__post_init__()

    def fraction(self, clock: Clock) -> float:
        """Return the fraction to replace at this time: zeta, annealed."""
        return self.zeta * self.schedule.factor(clock)

    def n_replaced(self, layer: LayerState, clock: Clock) -> int:
        """Return the number of connections of a layer to replace at this time."""
        return round(self.fraction(clock) * layer.topology.n_connections)


class LayerwiseStrategy(ABC):
    """Base class of strategies that rewire every layer on its own."""

    @property
    @abstractmethod
    def schedule(self) -> RewiringSchedule:
        """When to rewire."""

    def rewire(self, layers: Sequence[LayerState], clock: Clock, seed: int) -> list[Rewiring]:
        """Rewire every layer that is not full, each with its own seed."""
        return [
            Rewiring.unchanged(layer.topology)
            if layer.is_full
            else self.rewire_layer(layer, clock, layer_seed(seed, index))
            for index, layer in enumerate(layers)
        ]

    @abstractmethod
    def rewire_layer(self, layer: LayerState, clock: Clock, seed: int) -> Rewiring:
        """Return the next topology of ``layer``; change nothing in place."""


class StatefulStrategy(ABC):
    """Base class of strategies that remember something from one rewiring to the next.

    The strategy object itself never changes.  Its memory is a `State`: an argument and a result of
    its methods, which the training loop keeps and saves with the network.

    For ``n_watched`` steps before every rewiring, `watch` is called before each step; the signals
    of the minibatch are then available.
    """

    @property
    @abstractmethod
    def schedule(self) -> RewiringSchedule:
        """When to rewire."""

    @property
    def n_watched(self) -> int:
        """The number of steps before a rewiring in which `watch` is called."""
        return 0

    @abstractmethod
    def start_state(self, layers: Sequence[LayerState], seed: int) -> State:
        """Return the state before the first step."""

    @abstractmethod
    def rewire_from(
        self, state: State, layers: Sequence[LayerState], clock: Clock, seed: int
    ) -> tuple[list[Rewiring], State]:
        """Return one rewiring per layer and the next state; change nothing in place."""

    def watch(self, state: State, layers: Sequence[LayerState], clock: Clock) -> State:
        """Return the state after seeing the signals of the next minibatch."""
        del layers, clock
        return state

    def rewire(self, layers: Sequence[LayerState], clock: Clock, seed: int) -> list[Rewiring]:
        """Rewire from the start state."""
        return self.rewire_from(self.start_state(layers, seed), layers, clock, seed)[0]


def start_state(strategy: Strategy, layers: Sequence[LayerState], seed: int) -> State:
    """Return the start state of any strategy; it is empty for most."""
    if isinstance(strategy, StatefulStrategy):
        return strategy.start_state(layers, seed)
    return {}


def rewire_from(
    strategy: Strategy, state: State, layers: Sequence[LayerState], clock: Clock, seed: int
) -> tuple[list[Rewiring], State]:
    """Rewire by any strategy, with or without a state."""
    if isinstance(strategy, StatefulStrategy):
        return strategy.rewire_from(state, layers, clock, seed)
    return strategy.rewire(layers, clock, seed), state


def watched_steps(strategy: Strategy, clock: Clock, stop: int) -> list[int]:
    """Return the steps from the clock's step up to ``stop`` in which a strategy watches.

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
    watched = {step for last in due for step in range(last - n_watched, last)}
    return sorted(step for step in watched if clock.step <= step < stop)


def layer_seed(seed: int, index: int) -> int:
    """Return the seed of one layer at one rewiring."""
    return derive_seed(seed, "rewire layer", index)
