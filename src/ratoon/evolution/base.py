"""Interfaces of evolution strategies: their input, their result, schedule and promises."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, get_args, runtime_checkable

import numpy as np
import scipy.sparse

from ratoon.arrays import Array
from ratoon.errors import (
    InvalidInputError,
    InvalidParameterError,
    check_field_types,
    check_fraction,
)
from ratoon.evolution.clock import Clock, RewiringSchedule
from ratoon.layers import SparseLayer
from ratoon.rng import derive_seed
from ratoon.topology import IntArray, Rewiring, Topology

Signals = tuple[Array, Array]
"""Activations (n_in, batch) and errors (n_out, batch) of a layer for one minibatch."""

State = dict[str, Array]
"""What a strategy remembers between rewirings: named arrays, which any file can hold."""

Keeps = Literal["layer", "total", "fewer", "budget"]
"""What a strategy promises about the number of connections after a rewiring."""


class RewiringHasNoEffectWarning(UserWarning):
    """A strategy cannot rewire any layer, because every layer has all its connections."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The connections of a layer as one list per neuron, in two flat arrays.

    The list of neuron ``i`` is the range from ``starts[i]`` to ``starts[i + 1]``.  Neighbours in a
    list are ascending.  The arrays are read-only.

    Parameters
    ----------
    starts : ndarray of int64
        Beginning of the list of every neuron, followed by the number of connections.
    neighbours : ndarray of int64
        The neuron at the other end of every connection.
    slots : ndarray of int64
        The slot of every connection, to look up its weight.
    """

    starts: IntArray
    neighbours: IntArray
    slots: IntArray

    def of(self, neuron: int) -> tuple[IntArray, IntArray]:
        """Return the neighbours of one neuron, and the slots of its connections."""
        part = slice(self.starts[neuron], self.starts[neuron + 1])
        return self.neighbours[part], self.slots[part]


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

    @cached_property
    def by_input(self) -> Neighbours:
        """For every input, the outputs that it is connected to.

        Time and memory are proportional to the number of connections and neurons.

        Examples
        --------
        >>> topology = Topology.from_pairs((3, 2), [2, 0, 0], [1, 1, 0])
        >>> lists = LayerState(topology, np.ones(3)).by_input
        >>> lists.starts.tolist(), lists.neighbours.tolist()
        ([0, 2, 2, 3], [0, 1, 1])
        >>> outputs, slots = lists.of(0)
        >>> topology.columns[slots].tolist() == outputs.tolist()
        True
        """
        inputs, outputs = self.topology.pairs()
        return _neighbours(inputs, outputs, self.topology.shape)

    @cached_property
    def by_output(self) -> Neighbours:
        """For every output, the inputs that it is connected to.

        Examples
        --------
        >>> topology = Topology.from_pairs((3, 2), [2, 0, 0], [1, 1, 0])
        >>> LayerState(topology, np.ones(3)).by_output.of(1)[0].tolist()
        [0, 2]
        """
        inputs, outputs = self.topology.pairs()
        return _neighbours(outputs, inputs, self.topology.shape[::-1])

    def degrees(self) -> tuple[IntArray, IntArray]:
        """Return the number of connections of every input and of every output."""
        return self.topology.degrees()

    def strengths(self) -> tuple[Array, Array]:
        """Return the summed magnitude of the weights of every input and of every output.

        Examples
        --------
        >>> topology, order = Topology.from_pairs_with_order((2, 3), [0, 1, 1], [0, 0, 2])
        >>> layer = LayerState(topology, np.array([1.0, -2.0, 0.5])[order])
        >>> [strength.tolist() for strength in layer.strengths()]
        [[1.0, 2.5], [3.0, 0.0, 0.5]]
        """
        magnitudes = np.abs(self.weights).astype(np.float64)
        of_inputs, of_outputs = (
            np.bincount(ends, weights=magnitudes, minlength=n)
            for ends, n in zip(self.topology.pairs(), self.topology.shape, strict=True)
        )
        return of_inputs, of_outputs

    def activity(self) -> tuple[Array, Array]:
        """Return the mean magnitude of every input's activation and of every output's error.

        The mean is over the samples of the next minibatch.

        Examples
        --------
        >>> topology = Topology.from_pairs((2, 1), [0], [0])
        >>> signals = lambda: (np.array([[1.0, 3.0], [0.0, 0.0]]), np.array([[-1.0, 0.0]]))
        >>> [mean.tolist() for mean in LayerState(topology, np.ones(1), signals=signals).activity()]
        [[2.0, 0.0], [0.5]]
        """
        activations, errors = signals_of(self)
        return (
            np.abs(activations).mean(axis=1, dtype=np.float64),
            np.abs(errors).mean(axis=1, dtype=np.float64),
        )

    def gradients_at(self, positions: IntArray) -> Array:
        """Return the gradient of the next minibatch at given positions, connected or not.

        Parameters
        ----------
        positions : ndarray of int64
            Flat row-major positions: ``input * n_out + output``.

        Raises
        ------
        InvalidInputError
            If a position is outside the layer, or signals were not recorded.

        Examples
        --------
        >>> topology = Topology.from_pairs((2, 2), [0], [0])
        >>> signals = lambda: (np.array([[10.0], [1.0]]), np.array([[3.0], [-2.0]]))
        >>> LayerState(topology, np.ones(1), signals=signals).gradients_at(np.array([1, 2]))
        array([-20.,   3.])
        """
        positions = np.asarray(positions)
        n = self.topology.n_positions
        if positions.size and not (positions.min() >= 0 and positions.max() < n):
            raise InvalidInputError(f"a position is not in [0, {n}), the range of {self.topology}.")
        return gradients_at(signals_of(self), self.topology.shape[1], positions)


def _neighbours(neurons: IntArray, others: IntArray, shape: tuple[int, int]) -> Neighbours:
    slots = np.arange(neurons.size)
    lists = scipy.sparse.coo_array((slots, (neurons, others)), shape=shape).tocsr()
    lists.sort_indices()
    arrays = [part.astype(np.int64) for part in (lists.indptr, lists.indices, lists.data)]
    for array in arrays:
        array.flags.writeable = False
    return Neighbours(*arrays)


def signals_of(layer: LayerState) -> Signals:
    """Return activations and errors of the next minibatch; raise if they were not recorded."""
    if layer.signals is None:
        raise InvalidInputError(
            "this strategy uses gradients, so it needs `LayerState.signals`: activations and"
            " errors of a minibatch."
        )
    return layer.signals()


def gradients_at(signals: Signals, n_out: int, positions: IntArray) -> Array:
    """Return the gradient at each position, computed block by block.

    Examples
    --------
    >>> x, d = np.array([[10.0], [1.0]]), np.array([[3.0], [-2.0]])
    >>> gradients_at((x, d), 2, np.array([1, 2]))
    array([-20.,   3.])
    """
    activations, errors = signals
    gradients = np.empty(positions.size, dtype=activations.dtype)
    block = max(1, (1 << 18) // max(1, activations.shape[1]))
    for first in range(0, positions.size, block):
        here = positions[first : first + block]
        gradients[first : first + block] = np.einsum(
            "kb,kb->k", activations[here // n_out], errors[here % n_out]
        )
    return gradients


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
    Three more attributes are optional; `LayerwiseStrategy` and `StatefulStrategy` declare them.

    ``keeps`` is the promise about the number of connections after a rewiring:

    * ``"layer"``, the default: every layer keeps its number.
    * ``"total"``: the network keeps its number.
    * ``"fewer"``: no layer has more than before.
    * ``"budget"``: the number follows from a method ``budget(start, clock)``.  It takes the layers
      before the first rewiring and the time of a rewiring, and returns one number per layer, or
      one number for the network.

    ``rewires_full_layers`` (default False) says whether layers that have all their connections
    are also rewired: a strategy that prunes can start from a dense network.  Other strategies
    cannot change such a layer, and a network with no other layers triggers a
    `RewiringHasNoEffectWarning`.
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
    """Base class of strategies that rewire every layer on its own.

    Full layers are left unchanged, unless the class sets ``rewires_full_layers = True``.
    """

    keeps: ClassVar[Keeps] = "layer"

    @property
    @abstractmethod
    def schedule(self) -> RewiringSchedule:
        """When to rewire."""

    @property
    def rewires_full_layers(self) -> bool:
        """Whether layers that have all their connections are rewired too."""
        return False

    def rewire(self, layers: Sequence[LayerState], clock: Clock, seed: int) -> list[Rewiring]:
        """Rewire every layer with its own seed; see the class for full layers."""
        return [
            Rewiring.unchanged(layer.topology)
            if layer.is_full and not self.rewires_full_layers
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

    keeps: ClassVar[Keeps] = "layer"

    @property
    @abstractmethod
    def schedule(self) -> RewiringSchedule:
        """When to rewire."""

    @property
    def rewires_full_layers(self) -> bool:
        """Whether layers that have all their connections are rewired too."""
        return False

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


def keeps_of(strategy: Strategy) -> Keeps:
    """Return what any strategy promises about the number of connections.

    Raises
    ------
    InvalidParameterError
        If the strategy has an unknown value of ``keeps``, or promises a budget without having
        the method ``budget``.

    Examples
    --------
    >>> from ratoon.evolution import DSR, SET
    >>> keeps_of(SET()), keeps_of(DSR())
    ('layer', 'total')
    """
    keeps: Keeps = getattr(strategy, "keeps", "layer")
    if keeps not in get_args(Keeps):
        raise InvalidParameterError(
            f"{type(strategy).__name__}: `keeps` must be one of {get_args(Keeps)}, got {keeps!r}."
        )
    if keeps == "budget" and not callable(getattr(strategy, "budget", None)):
        raise InvalidParameterError(
            f'{type(strategy).__name__}: `keeps = "budget"` needs a method `budget(start, clock)`.'
        )
    return keeps


def promised(
    strategy: Strategy, start: Sequence[LayerState], clock: Clock
) -> list[int] | int | None:
    """Return the promised number of connections after a rewiring.

    Parameters
    ----------
    strategy : Strategy
        Any strategy.
    start : sequence of LayerState
        The layers before the first rewiring.
    clock : Clock
        The time of the rewiring.

    Returns
    -------
    list of int, int or None
        One number per layer, one number for the network, or None if the strategy only promises
        that there are not more.

    Examples
    --------
    >>> from ratoon.evolution import DSR, SET
    >>> layer = LayerState(Topology.random((9, 9), 20, seed=0), np.ones(20))
    >>> promised(SET(), [layer, layer], Clock(0, 1, 1)), promised(DSR(), [layer], Clock(0, 1, 1))
    ([20, 20], 20)
    """
    counts = [layer.topology.n_connections for layer in start]
    match keeps_of(strategy):
        case "layer":
            return counts
        case "total":
            return sum(counts)
        case "fewer":
            return None
        case "budget":
            found: Any = strategy.budget(start, clock)  # type: ignore[attr-defined]
            if isinstance(found, int | np.integer):
                return int(found)
            return [int(count) for count in found]


def rewires_full_layers(strategy: Strategy) -> bool:
    """Return whether a strategy also rewires layers that have all their connections.

    Examples
    --------
    >>> from ratoon.evolution import SET, NeST
    >>> rewires_full_layers(SET()), rewires_full_layers(NeST(final=0.5))
    (False, True)
    """
    return bool(getattr(strategy, "rewires_full_layers", False))


def warn_if_all_full(
    strategy: Strategy, layers: Sequence[LayerState | SparseLayer], *, stacklevel: int = 2
) -> None:
    """Warn if a strategy can only replace connections and every layer has all of them.

    A strategy that never rewires does not trigger the warning.
    """
    never = strategy.schedule.until == 0
    if never or rewires_full_layers(strategy) or not all(_is_full(layer) for layer in layers):
        return
    warnings.warn(
        f"every layer has all its connections, so {type(strategy).__name__} changes nothing; set"
        f" `density` or `epsilon` to a smaller value.",
        RewiringHasNoEffectWarning,
        stacklevel=stacklevel + 1,
    )


def _is_full(layer: LayerState | SparseLayer) -> bool:
    allowed = layer.allowed
    n = layer.topology.n_positions if allowed is None else allowed.n_connections
    return layer.topology.n_connections >= n


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
