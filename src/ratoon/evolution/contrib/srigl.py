"""SRigL, structured RigL (Lasby et al., ICLR 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.errors import InvalidParameterError
from ratoon.evolution.allocate import distinct, split_in_proportion
from ratoon.evolution.base import LayerState, ScheduledFraction, Signals, layer_seed
from ratoon.evolution.clock import Clock
from ratoon.evolution.grow import empty_allowed, gradients_at, largest_positions, signals_of
from ratoon.evolution.prune import strongest
from ratoon.kernels.absent import grow_at, largest_absent_per_output
from ratoon.rng import derive_generator
from ratoon.topology import IntArray, Rewiring


@dataclass(frozen=True)
class SRigL(ScheduledFraction):
    """RigL with the same number of incoming connections for every active neuron.

    Of a layer's n connections, the ``c = round(zeta(t) * n)`` with the smallest ``|w|`` are pruned.
    A connection is *salient* if it is not among them, or if it is absent and its gradient is among
    the c largest.  A hidden neuron with fewer than ``gamma`` times the mean number of incoming
    connections that are salient is ablated: it loses all incoming connections.  The others get n
    connections in equal numbers, up to a difference of one.  A neuron that has more than its number
    prunes its weakest; one that has fewer grows where its own gradients are largest, with weights
    of 0.

    Parameters
    ----------
    zeta : float, default=0.3
        Fraction of a layer's connections replaced at the first rewiring.
    gamma : float, default=0.3
        Salient connections below which a neuron is ablated, as a fraction of the mean number of
        incoming connections of active neurons (gamma_sal in the paper); 0 ablates no neuron.
    every : int, default=100
        Steps between two rewirings.
    until : float, default=0.75
        Fraction of training after which the topology no longer changes.
    anneal : {"constant", "linear", "cosine"}, default="cosine"
        How zeta falls to 0 by then.

    Notes
    -----
    The start need not have equal numbers: the first rewiring makes them equal.  The start
    ``ratoon.initialise.patterns.fan_in`` has them from the beginning.  An ablated neuron keeps its
    outgoing connections and its index, and becomes active again once enough of the largest
    gradients lead to it.  The last layer has no ablation.  If an input layer or a limit is too
    narrow for the connections of the active neurons, the most salient of the others stay active.

    The search is exact, as that of `RigL`.  If fewer positions of a neuron have a gradient other
    than 0, the rest is drawn at random.

    Cost per rewiring: two searches as in `RigL`, and about 0.2 microseconds per connection; memory
    for the new connections and a few arrays of slots.

    Examples
    --------
    >>> SRigL(gamma=0.5).schedule
    RewiringSchedule(every=100, unit='step', until=0.75, anneal='cosine')
    """

    unit = "step"

    zeta: float = 0.3
    gamma: float = 0.3
    every: int = 100
    until: float = 0.75
    anneal: str = "cosine"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.gamma <= 1.0:
            raise InvalidParameterError(f"SRigL: `gamma` must be in [0, 1], got {self.gamma!r}.")

    def rewire(self, layers: Sequence[LayerState], clock: Clock, seed: int) -> list[Rewiring]:
        """Return one rewiring per layer, with the same number of connections."""
        rewirings = []
        for index, layer in enumerate(layers):
            if layer.is_full or layer.topology.n_connections == 0:
                rewirings.append(Rewiring.unchanged(layer.topology))
                continue
            gamma = self.gamma if index < len(layers) - 1 else 0.0
            n_replaced = self.n_replaced(layer, clock)
            rewirings.append(rewired(layer, n_replaced, gamma, layer_seed(seed, index)))
        return rewirings


def rewired(layer: LayerState, n_replaced: int, gamma: float, seed: int) -> Rewiring:
    """Return the next topology of a layer, with neurons ablated below ``gamma``."""
    topology, signals = layer.topology, signals_of(layer)
    n_out = topology.shape[1]
    columns = topology.columns
    kept = strongest(layer.weights, n_replaced)
    is_salient_at = largest_positions(layer, np.arange(topology.n_connections), signals, n_replaced)
    n_kept = np.bincount(columns[kept], minlength=n_out)
    salient = n_kept + np.bincount(is_salient_at % n_out, minlength=n_out)
    fan_in = topology.n_connections / np.count_nonzero(topology.degrees()[1])
    is_active = salient >= gamma * fan_in
    targets = fan_ins(layer, is_active, salient, n_kept)
    kept = without_surplus(kept, columns[kept], layer.weights[kept], targets)
    counts = targets - np.bincount(columns[kept], minlength=n_out)
    return grow_at(topology, kept, grown_positions(layer, kept, signals, counts, seed))


def without_surplus(kept: IntArray, outputs: IntArray, weights: Array, most: IntArray) -> IntArray:
    """Return the kept slots without the weakest of outputs that have more than their number.

    Only the slots of these outputs are ranked, which are few once all have equal numbers.

    Examples
    --------
    >>> outputs, weights = np.array([0, 1, 0, 0]), np.array([3.0, 1.0, 2.0, 4.0])
    >>> without_surplus(np.arange(4), outputs, weights, np.array([1, 2])).tolist()
    [1, 3]
    """
    surplus = np.bincount(outputs, minlength=most.size) > most
    ranked = np.flatnonzero(surplus[outputs])
    groups = outputs[ranked]
    stays = np.ones(kept.size, dtype=bool)
    stays[ranked] = rank_in_group(groups, -np.abs(weights[ranked])) < most[groups]
    return kept[stays]


def fan_ins(
    layer: LayerState, is_active: NDArray[np.bool_], salient: IntArray, n_kept: IntArray
) -> IntArray:
    """Return how many incoming connections every output gets: equal numbers for active ones.

    The sum is the number of connections of the layer.  If the positions of the active outputs do
    not suffice, more outputs are active, those with the most salient connections first.  What
    remains of an equal division goes to the outputs with the most kept connections.
    """
    n_in, n_out = layer.topology.shape
    limits = np.full(n_out, n_in) if layer.allowed is None else layer.allowed.degrees()[1]
    n_connections = layer.topology.n_connections
    by_salience = np.lexsort((-salient, ~is_active))
    enough = int(np.searchsorted(np.cumsum(limits[by_salience]), n_connections)) + 1
    active = by_salience[: max(enough, int(np.count_nonzero(is_active)))]
    active = active[np.lexsort((active, -n_kept[active]))]
    targets = np.zeros(n_out, dtype=np.int64)
    parts = split_in_proportion(n_connections, [1.0] * active.size, limits[active].tolist())
    targets[active] = parts
    return targets


def grown_positions(
    layer: LayerState, kept: IntArray, signals: Signals, counts: IntArray, seed: int
) -> IntArray:
    """Return ``counts[j]`` empty positions of every output j: largest gradients, then random."""
    rng = derive_generator(seed, "fan in")
    if layer.allowed is not None:
        return _among_allowed(layer, kept, signals, counts, rng)
    topology = layer.topology
    positions = largest_absent_per_output(
        topology, kept, *signals, counts, n_threads=layer.n_threads
    )
    n_out = topology.shape[1]
    missing = counts - np.bincount(positions % n_out, minlength=n_out)
    if not missing.any():
        return positions
    occupied = np.concatenate((topology.positions[kept], positions))
    drawn = draw_per_output(topology.shape, occupied, missing, rng)
    return np.sort(np.concatenate((positions, drawn)))


def _among_allowed(
    layer: LayerState, kept: IntArray, signals: Signals, counts: IntArray, rng: np.random.Generator
) -> IntArray:
    n_out = layer.topology.shape[1]
    empty = empty_allowed(layer, kept)
    magnitudes = np.abs(gradients_at(signals, n_out, empty))
    ties = np.where(magnitudes == 0, rng.random(empty.size), 0.0)
    ranks = rank_in_group(empty % n_out, -magnitudes, ties)
    return empty[ranks < counts[empty % n_out]]


def rank_in_group(groups: IntArray, *keys: Array) -> IntArray:
    """Return the rank of every item among those of its group, by the keys, then by its index.

    Examples
    --------
    >>> rank_in_group(np.array([0, 1, 0, 0]), np.array([5.0, 1.0, 2.0, 5.0])).tolist()
    [1, 0, 0, 2]
    """
    order = np.lexsort((*reversed(keys), groups))
    in_order = groups[order]
    is_first = np.diff(in_order, prepend=-1) != 0
    firsts = np.flatnonzero(is_first)
    ranks = np.empty(groups.size, dtype=np.int64)
    ranks[order] = np.arange(groups.size) - np.repeat(firsts, np.diff(firsts, append=groups.size))
    return ranks


def draw_per_output(
    shape: tuple[int, int], occupied: IntArray, counts: IntArray, rng: np.random.Generator
) -> IntArray:
    """Draw ``counts[j]`` distinct empty positions of every output j, each set equally likely.

    An occupied position is drawn again; for outputs that would be more than half full, ranks among
    the empty inputs are drawn instead.

    Parameters
    ----------
    shape : tuple of int
        Inputs and outputs of the layer.
    occupied : ndarray of int64
        Occupied positions, in any order.
    counts : ndarray of int64
        How many positions to draw, one number per output; at most as many as are empty.
    rng : numpy.random.Generator
        Random number generator.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draw_per_output((3, 2), np.array([0, 3]), np.array([2, 1]), rng).tolist()
    [2, 4, 5]
    """
    n_in, n_out = shape
    inputs, outputs = np.divmod(occupied[counts[occupied % n_out] > 0], n_out)
    taken = np.sort(outputs * n_in + inputs)  # ordered by output
    degrees = np.bincount(outputs, minlength=n_out)
    is_crowded = 2 * (degrees + counts) > n_in
    parts = [_drawn_again(taken, degrees + np.where(is_crowded, 0, counts), n_in, rng)]
    starts = np.cumsum(degrees) - degrees
    for output in np.flatnonzero(is_crowded & (counts > 0)):
        first = starts[output]
        here = taken[first : first + degrees[output]] - output * n_in
        ranks = rng.choice(n_in - here.size, int(counts[output]), replace=False, shuffle=False)
        passed = np.searchsorted(here - np.arange(here.size), ranks, side="right")
        parts.append(output * n_in + ranks + passed)
    codes = np.concatenate(parts)
    return np.sort(codes % n_in * n_out + codes // n_in)


def _drawn_again(
    taken: IntArray, wanted: IntArray, n_in: int, rng: np.random.Generator
) -> IntArray:
    """Draw for every output until ``wanted`` codes are taken; draw again what is taken already."""
    codes, missing = taken, wanted - np.bincount(taken // n_in, minlength=wanted.size)
    while missing.any():
        rows = np.repeat(np.arange(wanted.size), missing)
        new = rows * n_in + rng.integers(n_in, size=rows.size)
        codes = distinct(np.concatenate((codes, new)))
        missing = wanted - np.bincount(codes // n_in, minlength=wanted.size)
    return np.setdiff1d(codes, taken, assume_unique=True)
