"""Scores of predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

N_BINS = 10


def scores_of(y: Array, predicted: Array, chances: Array | None) -> dict[str, float]:
    """Return accuracy and balanced accuracy in percent, and how good the probabilities are.

    >>> y = np.array([0, 1])
    >>> scores_of(y, y, np.array([[0.5, 0.5], [0.5, 0.5]]))["brier"]
    0.5
    """
    right = predicted == y
    found = {
        "accuracy": 100.0 * float(right.mean()),
        "balanced": 100.0 * float(np.mean([right[y == k].mean() for k in np.unique(y)])),
    }
    if chances is not None:
        hits = np.eye(chances.shape[1])[y]
        found["log_loss"] = float(-np.log(np.clip(chances[hits > 0], 1e-7, 1.0)).mean())
        found["brier"] = float(np.square(chances - hits).sum(axis=1).mean())
        found["calibration_error"] = calibration_error(y, chances)
    return found


def calibration_error(y: Array, chances: Array) -> float:
    """Return how far confidence is from accuracy, over ten bins of confidence, weighed by count.

    >>> calibration_error(np.array([0, 1]), np.array([[0.8, 0.2], [0.8, 0.2]]))
    0.3
    """
    confidence = chances.max(axis=1)
    right = chances.argmax(axis=1) == y
    bins = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    gap = [
        abs(float(confidence[bins == b].mean() - right[bins == b].mean())) * np.mean(bins == b)
        for b in np.unique(bins)
    ]
    return round(float(np.sum(gap)), 12)
