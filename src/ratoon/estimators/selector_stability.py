"""How far several rankings of features agree."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array


def top_features(strength: Array, k: int) -> NDArray[np.int64]:
    """Return the ``k`` strongest features, strongest first; of equals the first.

    Examples
    --------
    >>> top_features(np.array([1.0, 3.0, 3.0, 2.0]), 3).tolist()
    [1, 2, 3]
    """
    return np.argsort(-np.asarray(strength), kind="stable")[:k]


def selection_frequency(strengths: Array, k: int) -> NDArray[np.float64]:
    """Return in which share of the rankings every feature is among the first ``k``.

    Examples
    --------
    >>> selection_frequency(np.array([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0]]), 2).tolist()
    [1.0, 0.5, 0.5]
    """
    chosen = np.zeros(strengths.shape)
    for row, strength in zip(chosen, strengths, strict=True):
        row[top_features(strength, k)] = 1.0
    return np.asarray(chosen.mean(axis=0))


def stability_index(strengths: Array, k: int) -> float:
    """Return the stability of choosing ``k`` features (Nogueira et al., JMLR 18, 2018).

    1 if all rankings have the same first k, about 0 if they agree no more than chance would have
    it.  Not a number for a single ranking, and where all features are chosen.

    Parameters
    ----------
    strengths : ndarray of shape (n_rankings, n_features)
        One ranking per row.
    k : int
        How many features are chosen.

    Examples
    --------
    >>> stability_index(np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]), 1)
    1.0
    >>> round(stability_index(np.array([[3.0, 2.0, 1.0, 0.0], [0.0, 1.0, 2.0, 3.0]]), 2), 3)
    -1.0
    """
    n_rankings, n_features = strengths.shape
    share = k / n_features
    if n_rankings < 2 or share >= 1.0:
        return float("nan")
    frequency = selection_frequency(strengths, k)
    variance = n_rankings / (n_rankings - 1) * frequency * (1.0 - frequency)
    return float(1.0 - variance.mean() / (share * (1.0 - share)))
