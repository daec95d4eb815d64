"""Growing connections.  The ``grow`` functions keep the given slots and return a rewiring.

All of them grow at allowed positions only (`LayerState.allowed`).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.evolution.allocate import distinct
from ratoon.evolution.base import LayerState, Signals
from ratoon.evolution.base import gradients_at as gradients_at
from ratoon.evolution.base import signals_of as signals_of
from ratoon.kernels.absent import empty_among, grow_at, laid_out, largest_absent
from ratoon.rng import derive_generator
from ratoon.topology import GROWN, IntArray, Rewiring, suited_grid


def empty_allowed(layer: LayerState, kept: IntArray) -> IntArray:
    """Return the allowed positions of a limited layer that ``kept`` leaves empty, ascending.

    Examples
    --------
    >>> from ratoon.topology import Topology
    >>> allowed = Topology.from_pairs((2, 2), [0, 1, 1], [0, 0, 1])
    >>> layer = LayerState(Topology.from_pairs((2, 2), [1], [0]), np.ones(1), allowed=allowed)
    >>> empty_allowed(layer, np.array([0])).tolist()
    [0, 3]
    """
    assert layer.allowed is not None, "without a limit there are too many positions to list"
    empty = empty_among(layer.topology, kept, layer.allowed.positions)
    empty.sort()
    return empty


def grow_uniformly(layer: LayerState, kept: IntArray, count: int, seed: int) -> Rewiring:
    """Grow ``count`` connections; every set of empty allowed positions is equally likely.

    Examples
    --------
    >>> from ratoon.topology import Topology
    >>> topology = Topology.from_pairs((2, 2), [1], [0])
    >>> allowed = Topology.from_pairs((2, 2), [1, 1], [0, 1])
    >>> layer = LayerState(topology, np.ones(1), allowed=allowed)
    >>> grow_uniformly(layer, np.array([0]), 1, seed=0).topology.positions.tolist()
    [2, 3]
    """
    if layer.allowed is None:
        return layer.topology.regrow(kept, count, seed=seed, n_threads=layer.n_threads)
    empty = empty_allowed(layer, kept)
    if not 0 <= count <= empty.size:
        raise InvalidInputError(
            f"{layer.topology!r} cannot grow {count} connections: its limit leaves {empty.size}"
            f" empty positions."
        )
    generator = derive_generator(seed, "within")
    drawn = generator.choice(empty, size=count, replace=False, shuffle=False)
    return grow_at(layer.topology, kept, np.sort(drawn))


def largest_positions(layer: LayerState, kept: IntArray, factors: Signals, count: int) -> IntArray:
    """Return the ``count`` empty positions with the largest gradient magnitude, ascending.

    Exact; of equal magnitudes the lower position is taken.  Positions with a gradient of 0 are
    not returned, so there may be fewer than ``count``.
    """
    if layer.allowed is None:
        return largest_absent(layer.topology, kept, *factors, count, n_threads=layer.n_threads)
    empty = empty_allowed(layer, kept)
    gradients = gradients_at(factors, layer.topology.shape[1], empty)
    chosen = largest(gradients, count)
    found: IntArray = empty[chosen[gradients[chosen] != 0]]
    return found


def largest(gradients: Array, count: int) -> IntArray:
    """Return the indices of the ``count`` largest magnitudes, ascending; of equal ones the first.

    Examples
    --------
    >>> largest(np.array([1.0, -3.0, 2.0, 3.0]), 2)
    array([1, 3])
    """
    if count >= gradients.size:
        return np.arange(gradients.size)
    if count <= 0:
        return np.empty(0, dtype=np.int64)
    magnitudes = np.abs(gradients)
    least = np.partition(magnitudes, gradients.size - count)[gradients.size - count]
    chosen = magnitudes > least
    ties = np.flatnonzero(magnitudes == least)
    chosen[ties[: count - int(np.count_nonzero(chosen))]] = True
    return np.flatnonzero(chosen)


def grow_largest_gradients(
    layer: LayerState, kept: IntArray, count: int, seed: int, *, factors: Signals | None = None
) -> Rewiring:
    """Grow at the empty positions with the largest gradient magnitude, with weights of 0.

    If fewer than ``count`` of them have a gradient other than 0, the rest is drawn uniformly.

    Parameters
    ----------
    layer : LayerState
        The layer before.
    kept : ndarray of int64
        Slots to keep, ascending.
    count : int
        Number of connections to grow.
    seed : int
        Seed of the positions drawn uniformly.
    factors : tuple of ndarray, optional
        Rows for inputs and outputs whose products replace the gradient.  The default is the
        signals of the next minibatch.

    Examples
    --------
    >>> from ratoon.topology import Topology
    >>> layer = LayerState(
    ...     Topology.from_pairs((2, 2), [0], [0]),
    ...     weights=np.array([0.7]),
    ...     signals=lambda: (np.array([[10.0], [1.0]]), np.array([[3.0], [-2.0]])),
    ... )
    >>> rewiring = grow_largest_gradients(layer, np.array([0]), 1, seed=0)
    >>> rewiring.topology.positions.tolist()  # the gradients are 30, -20, 3, -2
    [0, 1]
    """
    positions = largest_positions(layer, kept, factors or signals_of(layer), count)
    rewiring = grow_at(layer.topology, kept, positions)
    return grow_more(layer, rewiring, count - positions.size, seed)


def grow_more(layer: LayerState, rewiring: Rewiring, count: int, seed: int) -> Rewiring:
    """Return a rewiring with ``count`` more connections, drawn uniformly."""
    if count == 0:
        return rewiring
    every_slot = np.arange(rewiring.topology.n_connections)
    rewired = replace(layer, topology=rewiring.topology)
    return compose(rewiring, grow_uniformly(rewired, every_slot, count, seed))


def draw_by_strength(signals: Signals, n_drawn: int, rng: np.random.Generator) -> IntArray:
    """Draw positions; the probability of a neuron is proportional to its summed magnitude.

    Positions are distinct and ascending, so there may be fewer than ``n_drawn``.

    Examples
    --------
    >>> x, d = np.array([[0.0], [2.0]]), np.array([[1.0], [0.0], [-1.0]])
    >>> draw_by_strength((x, d), 50, np.random.default_rng(0))  # only 3 and 5 have a gradient
    array([3, 5])
    """
    ends = []
    for rows in signals:
        strength = np.abs(rows).sum(axis=1, dtype=np.float64)
        total = strength.sum()
        if not (total > 0 and math.isfinite(total)):
            return np.empty(0, dtype=np.int64)
        # Drawing how often each neuron occurs is much faster than drawing one neuron at a time.
        times = rng.multinomial(n_drawn, strength / total)
        ends.append(np.repeat(np.arange(times.size), times))
    positions, outputs = ends
    rng.shuffle(outputs)
    positions *= signals[1].shape[0]
    positions += outputs
    return distinct(positions)


def draw_among(
    positions: IntArray, signals: Signals, n_drawn: int, rng: np.random.Generator
) -> IntArray:
    """Draw from given positions in proportion to the summed magnitudes of their neurons.

    The result is distinct and ascending if ``positions`` is.

    Examples
    --------
    >>> x, d = np.array([[0.0], [2.0]]), np.array([[1.0], [0.0], [-1.0]])
    >>> draw_among(np.array([0, 3, 4]), (x, d), 50, np.random.default_rng(0))
    array([3])
    """
    n_out = signals[1].shape[0]
    of_inputs, of_outputs = (np.abs(rows).sum(axis=1, dtype=np.float64) for rows in signals)
    strength = of_inputs[positions // n_out] * of_outputs[positions % n_out]
    total = strength.sum()
    if not (total > 0 and math.isfinite(total)):
        return np.empty(0, dtype=np.int64)
    return positions[rng.multinomial(n_drawn, strength / total) > 0]


def compose(first: Rewiring, second: Rewiring) -> Rewiring:
    """Return one rewiring equal to two in a row; new connections start at 0."""
    origin = np.full(second.origin.shape, GROWN)
    carried = second.origin != GROWN
    origin[carried] = first.origin[second.origin[carried]]
    return Rewiring(second.topology, origin)


def retiled(rewiring: Rewiring) -> Rewiring:
    """Return a rewiring with new tiles if the number of connections has changed much.

    The size of tiles depends on the number of connections; with tiles of the wrong size a layer
    is slow.
    """
    old = rewiring.topology
    suited = suited_grid(old.shape, old.n_connections)
    if suited.grouped == old.grouped and 0.5 <= suited.tile_out / old.tile[1] <= 2.0:
        return rewiring
    topology, order = laid_out(old)
    weights = rewiring.grown_weights
    if weights is not None:
        by_slot = np.zeros(old.n_connections, dtype=weights.dtype)
        by_slot[rewiring.is_grown] = weights
        weights = by_slot[order][rewiring.is_grown[order]]
    return Rewiring(topology, rewiring.origin[order], weights)
