"""Ways to choose which connections go.  Each returns the slots that stay, ascending."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.topology import IntArray


def strongest_of_each_sign(weights: NDArray[Any], zeta: float) -> IntArray:
    """Slots left once the fraction ``zeta`` nearest zero is gone from each sign.

    Of equal weights those in lower slots go first.  A weight of 0 counts as positive.

    Examples
    --------
    >>> strongest_of_each_sign(np.array([3.0, -1.0, 0.5, -4.0]), 0.5)
    array([0, 3])
    """
    survivors = []
    for slots in (np.flatnonzero(~(weights >= 0)), np.flatnonzero(weights >= 0)):
        weakest_first = slots[np.argsort(np.abs(weights[slots]), kind="stable")]
        survivors.append(weakest_first[round(zeta * slots.size) :])
    return np.sort(np.concatenate(survivors))


def strongest(weights: NDArray[Any], n_pruned: int) -> IntArray:
    """Slots left once the ``n_pruned`` smallest by magnitude are gone, whatever their sign.

    Examples
    --------
    >>> strongest(np.array([3.0, -1.0, 0.5, -4.0]), 2)
    array([0, 3])
    """
    weakest_first = np.argsort(np.abs(weights), kind="stable")
    return np.sort(weakest_first[n_pruned:])
