"""Random initial topologies, pruning and growth: references for `rewire.cpp`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.kernels.reference.linear import normal
from ratoon.kernels.reference.random import draw_distinct
from ratoon.kernels.reference.tiles import Tile, tiles_and_slots, tiles_of
from ratoon.topology import GROWN, IntArray, Rewiring, Topology


def random_topology(
    shape: tuple[int, int], tile: tuple[int, int], grouped: bool, n_connections: int, *, seed: int
) -> Topology:
    """Draw exactly ``n_connections`` positions; every set of positions is equally likely.

    Examples
    --------
    >>> topology = random_topology((4, 3), (16, 3), True, 2, seed=0)
    >>> topology == Topology.random((4, 3), 2, seed=0)
    True
    """
    tiles = list(tiles_of(shape, tile, grouped))
    ranks = ranks_by_tile([each.area for each in tiles], n_connections, seed)
    starts = np.array([0, *accumulate(each.size for each in ranks)])
    packed = [each.pack(keys) for each, keys in zip(tiles, ranks, strict=True)]
    return Topology.checked(shape, tile, grouped, starts, np.concatenate(packed))


def regrow(topology: Topology, kept: IntArray, count: int, *, seed: int) -> Rewiring:
    """Keep the slots ``kept`` and grow ``count`` more, uniformly among the empty positions.

    Examples
    --------
    >>> topology = Topology.from_pairs((2, 2), [0, 1], [0, 1])
    >>> rewiring = regrow(topology, np.array([1]), 1, seed=3)
    >>> rewiring.topology.positions.tolist(), rewiring.origin.tolist()
    ([0, 3], [-1, 1])
    """
    tiles: list[Tile] = []
    occupied: list[IntArray] = []
    survivors: list[IntArray] = []
    for tile, slots in tiles_and_slots(topology):
        tiles.append(tile)
        survivors.append(kept[(kept >= slots.start) & (kept < slots.stop)])
        occupied.append(tile.unpack(topology.packed[survivors[-1]]))
    n_empty = [tile.area - keys.size for tile, keys in zip(tiles, occupied, strict=True)]
    packed, origins = [], []
    for t, ranks in enumerate(ranks_by_tile(n_empty, count, seed)):
        keys = np.concatenate((occupied[t], past_occupied(ranks, occupied[t])))
        origin = np.concatenate((survivors[t], np.full(ranks.size, GROWN)))
        order = np.argsort(keys)
        packed.append(tiles[t].pack(keys[order]))
        origins.append(origin[order])
    starts = np.array([0, *accumulate(origin.size for origin in origins)])
    grown = Topology.checked(
        topology.shape, topology.tile, topology.grouped, starts, np.concatenate(packed)
    )
    return Rewiring(grown, np.concatenate(origins))


def rewire_by_sign(
    topology: Topology,
    weights: NDArray[Any],
    carried: Sequence[NDArray[Any]],
    zeta: float,
    *,
    seed: int,
    sigma: float = 0.0,
    weight_seed: int = 0,
) -> tuple[Topology, int]:
    """Replace the fraction ``zeta`` nearest zero of each sign by as many random connections.

    The arrays are reordered in place; new connections get 0 in all of them except the weights,
    which start as normal deviates.  Returns the next topology and the number of new connections.
    """
    kept = strongest_of_each_sign(weights, zeta)
    rewiring = regrow(topology, kept, topology.n_connections - kept.size, seed=seed)
    fresh = normal(rewiring.n_grown, sigma, weights.dtype, seed=weight_seed)
    weights[:] = rewiring.carry(weights, grown=fresh)
    for values in carried:
        values[:] = rewiring.carry(values)
    return rewiring.topology, rewiring.n_grown


def strongest_of_each_sign(weights: NDArray[Any], zeta: float) -> IntArray:
    """Return the slots left after pruning the fraction ``zeta`` nearest zero of each sign.

    Of equal weights those in lower slots are pruned first.  The sign is that of the sign bit, also
    for 0 and NaN; NaN is pruned last.

    Examples
    --------
    >>> strongest_of_each_sign(np.array([3.0, -1.0, 0.5, -4.0, 0.5]), 0.5).tolist()
    [0, 3]
    """
    survivors = []
    for slots in (np.flatnonzero(np.signbit(weights)), np.flatnonzero(~np.signbit(weights))):
        weakest_first = slots[np.argsort(np.abs(weights[slots]), kind="stable")]
        survivors.append(weakest_first[round(zeta * slots.size) :])
    return np.sort(np.concatenate(survivors))


def ranks_by_tile(n_empty: Sequence[int], count: int, seed: int) -> list[IntArray]:
    """Draw distinct ranks over all tiles; return those of each tile, counted from its start."""
    drawn = np.array(draw_distinct(sum(n_empty), count, seed), dtype=np.int64)
    ends = list(accumulate(n_empty))
    return [
        drawn[(drawn >= end - size) & (drawn < end)] - (end - size)
        for end, size in zip(ends, n_empty, strict=True)
    ]


def past_occupied(ranks: IntArray, occupied: IntArray) -> IntArray:
    """Return the keys of the empty positions with these ranks, given the occupied keys.

    Examples
    --------
    >>> past_occupied(np.array([0, 1, 2]), occupied=np.array([1, 2]))
    array([0, 3, 4])
    """
    empty_before_occupied = occupied - np.arange(occupied.size)
    return ranks + np.searchsorted(empty_before_occupied, ranks, side="right")
