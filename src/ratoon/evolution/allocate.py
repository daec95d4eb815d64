"""Dividing new connections among layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ratoon.deprecation import moved
from ratoon.topology import IntArray

__getattr__ = moved(__name__, {"shares": "ratoon.evolution.allocate:split_in_proportion"})


def split_in_proportion(total: int, weights: Sequence[float], limits: Sequence[int]) -> IntArray:
    """Split ``total`` in proportion to ``weights``, with an upper limit for each part.

    What exceeds a limit is split among the others, again in proportion.  Rounding favours the
    largest remainders, and of equal remainders the first.  The parts add up to ``total``, or to
    the sum of the limits if that is smaller.

    Examples
    --------
    >>> split_in_proportion(10, weights=[3.0, 1.0, 1.0], limits=[100, 100, 100]).tolist()
    [6, 2, 2]
    >>> split_in_proportion(10, weights=[3.0, 1.0, 1.0], limits=[2, 100, 100]).tolist()
    [2, 4, 4]
    """
    maxima = np.asarray(limits, dtype=np.int64)
    shares = np.maximum(np.nan_to_num(np.asarray(weights, dtype=np.float64)), 0.0)
    counts = np.zeros_like(maxima)
    missing = min(int(total), int(maxima.sum()))
    is_open = maxima > 0
    while missing > 0:
        if not shares[is_open].any():  # only weights of 0 are left: split by limit
            shares = np.where(is_open, maxima, 0).astype(np.float64)
        open_shares = np.where(is_open, shares, 0.0)
        exact = missing * (open_shares / open_shares.sum())
        fills_up = is_open & (exact >= maxima)
        if fills_up.any():
            counts[fills_up] = maxima[fills_up]
            missing -= int(maxima[fills_up].sum())
            is_open &= ~fills_up
            continue
        counts[is_open] = np.floor(exact[is_open]).astype(np.int64)
        by_remainder = np.argsort(-(exact - np.floor(exact)), kind="stable")
        counts[by_remainder[: missing - int(counts[is_open].sum())]] += 1
        break
    return counts


def draw_split(total: int, n_available: Sequence[int], rng: np.random.Generator) -> IntArray:
    """Return the number of positions per layer when ``total`` are drawn over all layers.

    Positions are distinct and equally likely; layer i has ``n_available[i]`` of them.
    Repeated positions are drawn again, so time and memory are proportional to ``total`` and not
    to the number of positions.

    Examples
    --------
    >>> draw_split(4, [2, 0, 2], np.random.default_rng(0)).tolist()
    [2, 0, 2]
    """
    limits = np.asarray(n_available, dtype=np.int64)
    ends = np.cumsum(limits)
    n_positions = int(limits.sum())
    count = min(int(total), n_positions)
    draw_rest = count > n_positions // 2
    n_drawn = n_positions - count if draw_rest else count
    drawn = np.empty(0, dtype=np.int64)
    while drawn.size < n_drawn:
        more = rng.integers(n_positions, size=n_drawn - drawn.size)
        drawn = distinct(np.concatenate((drawn, more)))
    layer = np.searchsorted(ends, drawn, side="right")
    counts = np.bincount(layer, minlength=ends.size).astype(np.int64)
    return limits - counts if draw_rest else counts


def distinct(positions: IntArray) -> IntArray:
    """Return sorted distinct positions; the given array is sorted in place.

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
