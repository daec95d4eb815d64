"""CHT, Cannistraci-Hebb training (Zhang et al., 2024), and its soft forms CHTs and CHTss (2025)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ratoon.errors import InvalidParameterError
from ratoon.evolution.base import LayerState, ScheduledFraction, State, StatefulStrategy, layer_seed
from ratoon.evolution.clock import Clock
from ratoon.evolution.grow import grow_more, retiled
from ratoon.evolution.prune import strongest
from ratoon.kernels.absent import grow_at, slots_of
from ratoon.kernels.paths import PATH_SCORES, best_by_paths
from ratoon.rng import derive_generator, derive_seed
from ratoon.topology import IntArray, Rewiring


@dataclass(frozen=True)
class CHT(ScheduledFraction, StatefulStrategy):
    """Prune the weakest connections, grow where paths of length 3 predict a connection.

    Growth uses only the topology of the layer, no gradients: an empty position scores high if many
    paths ``input - output - input - output`` join its ends and the inner neurons of these paths
    have a small number of other connections.  New weights are 0.

    Before growth, connections of dead neurons are removed: those into hidden neurons without an
    outgoing connection, then those out of hidden neurons without an incoming one.  Every layer
    grows as many connections as it lost.

    Parameters
    ----------
    zeta : float, default=0.3
        Fraction of a layer's connections pruned by magnitude at each rewiring.
    score : {"ch3_l3p", "ch2_l3n"}, default="ch3_l3p"
        Score of an empty position (see `ratoon.kernels.paths`): CH3-L3p adds up paths, CH2-L3n
        their inner neurons.
    overlap : float, default=0.9
        A layer is no longer rewired once more than this fraction of its new connections were pruned
        at the same rewiring.
    every : int, default=1
        Epochs between two rewirings.
    until : float, default=1.0
        Fraction of training after which the topology no longer changes.
    anneal : {"constant", "linear", "cosine"}, default="constant"
        How zeta falls to 0 by then; ``"constant"`` keeps it.

    Notes
    -----
    If paths reach fewer positions than needed, the rest is drawn uniformly.

    Cost per rewiring: one addition for every path of length 3, about connections times the square
    of their number per neuron.  Neurons with very many connections are slow: 28 s for an output
    layer of 27,500 x 18 with 275,000 connections.  Memory is proportional to connections and
    neurons.

    Examples
    --------
    >>> CHT(score="ch2_l3n").schedule
    RewiringSchedule(every=1, unit='epoch', until=1.0, anneal='constant')
    """

    zeta: float = 0.3
    score: str = "ch3_l3p"
    overlap: float = 0.9
    every: int = 1
    until: float = 1.0
    anneal: str = "constant"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_score(self.score, "CHT")
        if not 0.0 <= self.overlap <= 1.0:
            raise InvalidParameterError(
                f"CHT: `overlap` must be in [0, 1], got {self.overlap!r}.\n"
                f"  At 1 every layer is rewired until the end."
            )

    def start_state(self, layers: Sequence[LayerState], seed: int) -> State:
        """Return which layers have stopped: none."""
        del seed
        return {"stopped": np.zeros(len(layers), dtype=bool)}

    def rewire_from(
        self, state: State, layers: Sequence[LayerState], clock: Clock, seed: int
    ) -> tuple[list[Rewiring], State]:
        """Return one rewiring per layer, each with the same number of connections."""
        stopped = state["stopped"].copy()
        kept = [
            None if stopped[i] or layer.is_full else self.kept(layer, clock)
            for i, layer in enumerate(layers)
        ]
        rewirings = []
        for i, (layer, slots) in enumerate(zip(layers, without_dead(layers, kept), strict=True)):
            if slots is None:
                rewirings.append(Rewiring.unchanged(layer.topology))
                continue
            n_after = layer.topology.n_connections
            rewiring = grow_by_paths(layer, slots, n_after, self.score, layer_seed(seed, i))
            stopped[i] = regrown(layer, rewiring) > self.overlap
            rewirings.append(rewiring)
        return rewirings, {"stopped": stopped}

    def kept(self, layer: LayerState, clock: Clock) -> IntArray:
        """Return the slots left after pruning by magnitude."""
        return strongest(layer.weights, self.n_replaced(layer, clock))


@dataclass(frozen=True)
class CHTs(ScheduledFraction):
    """CHT with random pruning and growth: weak weights and high scores are only more likely.

    The connections to keep are drawn without replacement with probabilities proportional to
    ``|w| ** T``, where T grows linearly from 1 to ``sharpness``.  New connections are drawn
    in proportion to their scores.  Dead neurons are treated as in `CHT`; layers do not stop.

    Parameters
    ----------
    zeta : float, default=0.3
        Fraction of a layer's connections pruned by weight at each rewiring.
    score : {"ch2_l3n", "ch3_l3p"}, default="ch2_l3n"
        Score of an empty position, as for `CHT`.
    sharpness : float, default=3.0
        The exponent T at the last rewiring, at least 1.
    every : int, default=1
        Epochs between two rewirings.
    until : float, default=1.0
        Fraction of training after which the topology no longer changes.
    anneal : {"constant", "linear", "cosine"}, default="constant"
        How zeta falls to 0 by then; ``"constant"`` keeps it.

    Notes
    -----
    Cost and memory are those of `CHT`, plus two random numbers per connection.

    Examples
    --------
    >>> CHTs(sharpness=2.0).exponent(Clock(step=50, steps_per_epoch=10, total_steps=100))
    1.5
    """

    zeta: float = 0.3
    score: str = "ch2_l3n"
    sharpness: float = 3.0
    every: int = 1
    until: float = 1.0
    anneal: str = "constant"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_score(self.score, "CHTs")
        if not 1.0 <= self.sharpness < np.inf:
            raise InvalidParameterError(
                f"CHTs: `sharpness` must be at least 1 and finite, got {self.sharpness!r}."
            )

    def exponent(self, clock: Clock) -> float:
        """Return the exponent of the weights at this time."""
        reached = min(1.0, clock.progress / self.until) if self.until > 0 else 1.0
        return 1.0 + (self.sharpness - 1.0) * reached

    def rewire(self, layers: Sequence[LayerState], clock: Clock, seed: int) -> list[Rewiring]:
        """Return one rewiring per layer, each with the same number of connections."""
        n_after = [layer.topology.n_connections for layer in layers]
        return self.rewire_to(n_after, layers, clock, seed)

    def rewire_to(
        self, n_after: Sequence[int], layers: Sequence[LayerState], clock: Clock, seed: int
    ) -> list[Rewiring]:
        """Return one rewiring per layer that is not full, to the given numbers of connections."""
        kept = [
            None if layer.is_full else self.kept(layer, n, clock, layer_seed(seed, i))
            for i, (layer, n) in enumerate(zip(layers, n_after, strict=True))
        ]
        return [
            Rewiring.unchanged(layer.topology)
            if slots is None
            else grow_by_paths(layer, slots, n, self.score, layer_seed(seed, i), drawn=True)
            for i, (layer, slots, n) in enumerate(
                zip(layers, without_dead(layers, kept), n_after, strict=True)
            )
        ]

    def kept(self, layer: LayerState, n_after: int, clock: Clock, seed: int) -> IntArray:
        """Draw the slots to keep: all but the fraction zeta of ``n_after``, in ascending order."""
        n_kept = n_after - round(self.fraction(clock) * n_after)
        rng = derive_generator(seed, "kept")
        # The largest ratios of weights to exponential numbers are a draw without replacement.
        keys = np.abs(layer.weights).astype(np.float64) ** self.exponent(clock)
        keys /= rng.exponential(size=keys.size)
        return strongest(keys, keys.size - n_kept)


@dataclass(frozen=True)
class CHTss(CHTs, StatefulStrategy):
    """CHTs from a denser start, whose number of connections falls along a sigmoid curve.

    At time t, as a fraction of ``decay_until``, a layer has ``1 - (1 - final) * g(t)`` times its
    connections at the start, where g rises from 0 to 1 along a logistic curve of ``6 * (2 t - 1)``.
    Full layers do not change.

    Parameters
    ----------
    zeta : float, default=0.3
        Fraction of a layer's connections that are replaced at each rewiring.
    score, sharpness, every, until, anneal
        As for `CHTs`.
    final : float, default=0.1
        Connections at the end, as a fraction of those at the start, in (0, 1].  The paper
        goes from a density of 50 % to 1 %, which is 0.02.
    decay_until : float, default=0.75
        Fraction of training after which the number of connections no longer falls.

    Notes
    -----
    The time of a rewiring grows with the cube of the density, so the first rewirings of a dense
    start are slow: 0.4 s for 784 x 1568 at a density of 5 %, 14 s at 20 %, minutes at 50 %.

    Examples
    --------
    >>> strategy = CHTss(final=0.1, decay_until=0.8)
    >>> [round(strategy.level(progress), 2) for progress in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
    [1.0, 0.96, 0.55, 0.14, 0.1, 0.1]
    """

    keeps = "budget"

    final: float = 0.1
    decay_until: float = 0.75

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("final", "decay_until"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise InvalidParameterError(
                    f"CHTss: `{name}` must be in (0, 1], got {getattr(self, name)!r}."
                )

    def level(self, progress: float) -> float:
        """Return the target number of connections, as a multiple of the number at the start."""
        at = min(1.0, progress / self.decay_until)
        # tanh(x / 2) is the logistic curve, scaled to [-1, 1]; divided so that it ends at 1.
        done = 0.5 + 0.5 * np.tanh(3.0 * (2.0 * at - 1.0)) / np.tanh(3.0)
        return float(1.0 - (1.0 - self.final) * done)

    def budget(self, start: Sequence[LayerState], clock: Clock) -> list[int]:
        """Return the number of connections of every layer after a rewiring at this time."""
        counts = [layer.topology.n_connections for layer in start]
        return [
            count if layer.is_full else self._target(count, clock)
            for layer, count in zip(start, counts, strict=True)
        ]

    def _target(self, count: int, clock: Clock) -> int:
        return min(count, max(1, round(self.level(clock.progress) * count)))

    def start_state(self, layers: Sequence[LayerState], seed: int) -> State:
        """Return the number of connections per layer at the start."""
        del seed
        return {"start_counts": np.array([layer.topology.n_connections for layer in layers])}

    def rewire_from(
        self, state: State, layers: Sequence[LayerState], clock: Clock, seed: int
    ) -> tuple[list[Rewiring], State]:
        """Return one rewiring per layer, to the number of connections given by the curve."""
        # A layer never grows, even if it starts with fewer connections than it had in the state.
        n_after = [
            min(layer.topology.n_connections, self._target(int(count), clock))
            for layer, count in zip(layers, state["start_counts"], strict=True)
        ]
        return [retiled(each) for each in self.rewire_to(n_after, layers, clock, seed)], state

    def rewire(self, layers: Sequence[LayerState], clock: Clock, seed: int) -> list[Rewiring]:
        """Rewire from the start state."""
        return self.rewire_from(self.start_state(layers, seed), layers, clock, seed)[0]


def check_score(score: str, owner: str) -> None:
    """Raise unless ``score`` is the name of a path score."""
    if score not in PATH_SCORES:
        raise InvalidParameterError(
            f"{owner}: `score` must be one of {PATH_SCORES}, got {score!r}."
        )


def without_dead(
    layers: Sequence[LayerState], kept: Sequence[IntArray | None]
) -> list[IntArray | None]:
    """Remove connections of dead hidden neurons from the kept slots of every layer.

    From the last layer to the first, connections into neurons without an outgoing connection are
    removed; then, from the first to the last, connections out of neurons without an incoming one.
    None means that a layer does not change.  Neighbouring layers of different widths do not
    share neurons, and a layer without connections leaves its neighbours as they are.

    Examples
    --------
    Hidden neuron 1 has no outgoing connection, so its incoming one is removed.

    >>> from ratoon.topology import Topology
    >>> topologies = Topology.full((1, 2)), Topology.from_pairs((2, 1), [0], [0])
    >>> layers = [LayerState(t, np.ones(t.n_connections)) for t in topologies]
    >>> without_dead(layers, [np.arange(2), np.arange(1)])
    [array([0]), array([0])]
    """
    left = list(kept)

    def ends(i: int, side: int) -> IntArray:
        """Return inputs (side 0) or outputs (side 1) of the connections left in a layer."""
        neurons, slots = layers[i].topology.pairs()[side], left[i]
        return neurons if slots is None else neurons[slots]

    def drop(i: int, side: int, neighbour: int) -> None:
        slots = left[i]
        width = layers[i].topology.shape[side]
        if slots is None or width != layers[neighbour].topology.shape[1 - side]:
            return
        is_alive = np.zeros(width, dtype=bool)
        is_alive[ends(neighbour, 1 - side)] = True
        if is_alive.any():
            left[i] = slots[is_alive[ends(i, side)]]

    for i in reversed(range(len(layers) - 1)):
        drop(i, 1, i + 1)
    for i in range(1, len(layers)):
        drop(i, 0, i - 1)
    return left


def grow_by_paths(
    layer: LayerState, kept: IntArray, n_after: int, score: str, seed: int, *, drawn: bool = False
) -> Rewiring:
    """Grow at the empty positions with the highest path scores, with weights of 0.

    Parameters
    ----------
    layer : LayerState
        The layer before.
    kept : ndarray of int64
        Slots to keep, ascending; paths are those of these connections.
    n_after : int
        Number of connections after growth.
    score : str
        One of `ratoon.kernels.paths.PATH_SCORES`.
    seed : int
        Seed of what is drawn.
    drawn : bool
        Draw positions in proportion to their scores instead of taking the highest ones.
    """
    count = n_after - kept.size
    positions, _ = best_by_paths(
        layer.topology,
        kept,
        score,
        count,
        seed=derive_seed(seed, "paths") if drawn else None,
        allowed=layer.allowed,
        n_threads=layer.n_threads,
    )
    rewiring = grow_at(layer.topology, kept, positions)
    return grow_more(layer, rewiring, count - positions.size, seed)


def regrown(layer: LayerState, rewiring: Rewiring) -> float:
    """Return the fraction of new connections that existed before the rewiring."""
    grown = rewiring.topology.positions[rewiring.is_grown]
    if grown.size == 0:
        return 0.0
    return float(np.count_nonzero(slots_of(layer.topology, grown) >= 0)) / grown.size
