"""Choosing the connections to prune.  Every function returns the kept slots, ascending."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.errors import InvalidParameterError
from ratoon.evolution.base import LayerState
from ratoon.topology import IntArray, Topology

REMOVALS = ("magnitude", "relative")


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


def relative_importance(topology: Topology, weights: NDArray[Any]) -> NDArray[np.float64]:
    """Return the importance of every connection among those of its input and of its output.

    It is ``|w|`` divided by the sum of ``|w|`` over the connections of the same output, plus the
    same for the input.  The strongest connection of a weak neuron is important, so neurons are not
    disconnected as easily as by magnitude.

    Examples
    --------
    >>> topology = Topology.from_pairs((2, 2), [0, 0, 1], [0, 1, 1])
    >>> relative_importance(topology, np.array([1.0, -3.0, 1.0]))  # in the order of the slots
    array([1.25, 1.5 , 1.25])
    """
    magnitudes = np.abs(weights).astype(np.float64)
    importance = np.zeros(magnitudes.size)
    for neurons, n_neurons in zip(topology.pairs(), topology.shape, strict=True):
        totals = np.bincount(neurons, weights=magnitudes, minlength=n_neurons)
        totals[totals == 0] = 1.0
        importance += magnitudes / totals[neurons]
    return importance


def pruning_scores(layer: LayerState, removal: str) -> Array:
    """Return what to compare connections by: their weight, or relative importance with its sign."""
    if removal == "magnitude":
        return layer.weights
    return np.copysign(relative_importance(layer.topology, layer.weights), layer.weights)


def check_removal(removal: str, owner: str) -> None:
    """Raise unless ``removal`` is a known way to choose the connections to prune."""
    if removal not in REMOVALS:
        raise InvalidParameterError(
            f"{owner}: `removal` must be one of {REMOVALS}, got {removal!r}."
        )
