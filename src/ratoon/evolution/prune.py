"""Ways to choose which connections go.  Each returns the slots that stay, ascending."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.topology import IntArray


def strongest_of_each_sign(weights: NDArray[Any], zeta: float) -> IntArray:
    """Slots left once the fraction ``zeta`` nearest zero is gone from each sign.

    Of equal weights those in lower slots go first.  A weight of 0 has the sign its sign bit tells.

    Examples
    --------
    >>> strongest_of_each_sign(np.array([3.0, -1.0, 0.5, -4.0]), 0.5)
    array([0, 3])
    """
    stays = np.zeros(weights.size, dtype=bool)
    for slots in (np.flatnonzero(np.signbit(weights)), np.flatnonzero(~np.signbit(weights))):
        stays[slots[strongest(weights[slots], round(zeta * slots.size))]] = True
    return np.flatnonzero(stays)


def strongest(weights: NDArray[Any], n_pruned: int) -> IntArray:
    """Slots left once the ``n_pruned`` smallest by magnitude are gone, whatever their sign.

    Of equal weights those in lower slots go first.

    Examples
    --------
    >>> strongest(np.array([3.0, -1.0, 0.5, -4.0]), 2)
    array([0, 3])
    """
    if n_pruned <= 0:
        return np.arange(weights.size)
    magnitudes = np.abs(weights)
    # A sort would need five times the memory.
    least = np.partition(magnitudes, n_pruned - 1)[n_pruned - 1]
    # What is not a number counts as the strongest, as in a sort.
    is_tie = np.isnan(magnitudes) if np.isnan(least) else magnitudes == least
    stays = is_tie.copy() if np.isnan(least) else ~(magnitudes < least)
    ties = np.flatnonzero(is_tie)
    stays[ties[: n_pruned - int(np.count_nonzero(~stays))]] = False
    return np.flatnonzero(stays)


def above(weights: NDArray[Any], threshold: float) -> IntArray:
    """Slots whose weight is at least ``threshold`` in magnitude; the strongest one in any case.

    A layer that lost all of its connections would let nothing through and learn nothing more.

    Examples
    --------
    >>> above(np.array([3.0, -1.0, 0.5, -4.0]), 1.0)
    array([0, 1, 3])
    >>> above(np.array([0.2, -0.3]), 1.0)
    array([1])
    """
    magnitudes = np.abs(weights)
    stays = ~(magnitudes < threshold)
    if weights.size > 0 and not stays.any():
        stays[np.argmax(magnitudes)] = True
    return np.flatnonzero(stays)
