"""Choosing the connections to prune.  Every function returns the kept slots, ascending."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.topology import IntArray


def strongest_of_each_sign(weights: NDArray[Any], zeta: float) -> IntArray:
    """Return the slots left after pruning the fraction ``zeta`` nearest to zero of each sign.

    Of equal weights those in lower slots are pruned first.  The sign of 0 is its sign bit.

    Examples
    --------
    >>> strongest_of_each_sign(np.array([3.0, -1.0, 0.5, -4.0]), 0.5)
    array([0, 3])
    """
    is_kept = np.zeros(weights.size, dtype=bool)
    for slots in (np.flatnonzero(np.signbit(weights)), np.flatnonzero(~np.signbit(weights))):
        is_kept[slots[strongest(weights[slots], round(zeta * slots.size))]] = True
    return np.flatnonzero(is_kept)


def strongest(weights: NDArray[Any], n_pruned: int) -> IntArray:
    """Return the slots left after pruning the ``n_pruned`` weights of smallest magnitude.

    Of equal weights those in lower slots are pruned first.

    Examples
    --------
    >>> strongest(np.array([3.0, -1.0, 0.5, -4.0]), 2)
    array([0, 3])
    """
    if n_pruned <= 0:
        return np.arange(weights.size)
    magnitudes = np.abs(weights)
    # A sort would take five times the memory.
    least = np.partition(magnitudes, n_pruned - 1)[n_pruned - 1]
    # NaN counts as the strongest, as in a sort.
    is_tie = np.isnan(magnitudes) if np.isnan(least) else magnitudes == least
    is_kept = is_tie.copy() if np.isnan(least) else ~(magnitudes < least)
    ties = np.flatnonzero(is_tie)
    is_kept[ties[: n_pruned - int(np.count_nonzero(~is_kept))]] = False
    return np.flatnonzero(is_kept)


def above(weights: NDArray[Any], threshold: float) -> IntArray:
    """Return the slots whose weight has a magnitude of at least ``threshold``.

    The strongest connection is always kept: a layer without connections could not learn any more.

    Examples
    --------
    >>> above(np.array([3.0, -1.0, 0.5, -4.0]), 1.0)
    array([0, 1, 3])
    >>> above(np.array([0.2, -0.3]), 1.0)
    array([1])
    """
    magnitudes = np.abs(weights)
    is_kept = ~(magnitudes < threshold)
    if weights.size > 0 and not is_kept.any():
        is_kept[np.argmax(magnitudes)] = True
    return np.flatnonzero(is_kept)
