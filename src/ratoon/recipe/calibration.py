"""Temperature: a factor on the outputs that makes probabilities of them that can be trusted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.losses import mean_loss

Array = NDArray[Any]

CANDIDATES = np.logspace(-0.5, 1.2, 35)


def best_temperature(outputs: Array, targets: Array, weights: Array, kind: str) -> float:
    """Return the factor with the least log-loss on outputs for samples that were held out.

    Targets are -1 and 1.  For continuous targets there is nothing to calibrate.

    Examples
    --------
    >>> right = np.array([[1.0, -1.0], [-1.0, 1.0]])
    >>> best_temperature(0.5 * right, right, np.ones(2), "softmax") > 10
    True
    """
    if kind == "squared" or outputs.size == 0:
        return 1.0
    loss = "softmax_cross_entropy" if kind == "softmax" else "sigmoid_cross_entropy"
    hits = (targets > 0).astype(np.float64)
    losses = [mean_loss(loss, factor * outputs, hits, weights) for factor in CANDIDATES]
    return float(CANDIDATES[int(np.argmin(losses))])
