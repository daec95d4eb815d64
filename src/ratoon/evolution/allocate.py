"""Ways to share new connections out among layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ratoon.topology import IntArray


def shares(total: int, weights: Sequence[float], room: Sequence[int]) -> IntArray:
    """Split ``total`` in proportion to ``weights``, none getting more than it has room for.

    What a full layer cannot take goes to the others, again in proportion.  Rounding favours the
    largest remainders, of equal ones the first.  The sum is ``total``, or all the room there is.

    Examples
    --------
    >>> shares(10, weights=[3.0, 1.0, 1.0], room=[100, 100, 100]).tolist()
    [6, 2, 2]
    >>> shares(10, weights=[3.0, 1.0, 1.0], room=[2, 100, 100]).tolist()
    [2, 4, 4]
    """
    limits = np.asarray(room, dtype=np.int64)
    claims = np.maximum(np.nan_to_num(np.asarray(weights, dtype=np.float64)), 0.0)
    counts = np.zeros_like(limits)
    missing = min(int(total), int(limits.sum()))
    is_open = limits > 0
    while missing > 0:
        if not claims[is_open].any():  # nobody is left with a claim: by room
            claims = np.where(is_open, limits, 0).astype(np.float64)
        share = np.where(is_open, claims, 0.0)
        exact = missing * (share / share.sum())
        fills_up = is_open & (exact >= limits)
        if fills_up.any():
            counts[fills_up] = limits[fills_up]
            missing -= int(limits[fills_up].sum())
            is_open &= ~fills_up
            continue
        counts[is_open] = np.floor(exact[is_open]).astype(np.int64)
        by_remainder = np.argsort(-(exact - np.floor(exact)), kind="stable")
        counts[by_remainder[: missing - int(counts[is_open].sum())]] += 1
        break
    return counts


def draw_shares(total: int, room: Sequence[int], rng: np.random.Generator) -> IntArray:
    """Say how many of ``total`` places fall to each layer when all are drawn at once.

    Places are distinct and equally likely over the layers together.  They are drawn one by one
    and again where one was drawn before, so time and memory follow ``total`` and not the room.

    Examples
    --------
    >>> draw_shares(4, [2, 0, 2], np.random.default_rng(0)).tolist()
    [2, 0, 2]
    """
    limits = np.asarray(room, dtype=np.int64)
    ends = np.cumsum(limits)
    n_places = int(limits.sum())
    wanted = min(int(total), n_places)
    left_out = wanted > n_places // 2
    n_drawn = n_places - wanted if left_out else wanted
    drawn = np.empty(0, dtype=np.int64)
    while drawn.size < n_drawn:
        more = rng.integers(n_places, size=n_drawn - drawn.size)
        drawn = distinct(np.concatenate((drawn, more)))
    layer = np.searchsorted(ends, drawn, side="right")
    counts = np.bincount(layer, minlength=ends.size).astype(np.int64)
    return limits - counts if left_out else counts


def distinct(positions: IntArray) -> IntArray:
    """Return positions ascending and each once; the given array is sorted in place.

    Several times faster than `numpy.unique`, which hashes.

    Examples
    --------
    >>> distinct(np.array([3, 1, 3]))
    array([1, 3])
    """
    positions.sort()
    is_first = np.ones(positions.size, dtype=bool)
    np.not_equal(positions[1:], positions[:-1], out=is_first[1:])
    return positions[is_first]
