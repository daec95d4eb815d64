"""From ridge outputs to classes and probabilities: decision boundary and temperature.

Both are fitted to cross-validated outputs of the training samples.
"""

from __future__ import annotations

import numpy as np

from ratoon.arrays import Array
from ratoon.losses import mean_loss

TEMPERATURES = np.logspace(-0.5, 1.2, 35)

PRIOR_WEIGHT = 0.8
"""Weight of the class frequencies in the boundary; 1 uses them as observed."""


def best_temperature(outputs: Array, targets: Array, weights: Array, kind: str) -> float:
    """Return the factor for which outputs, read as logits, have the smallest log-loss.

    Targets are -1 and 1.  For regression the factor is 1.

    Examples
    --------
    >>> right = np.array([[1.0, -1.0], [-1.0, 1.0]])
    >>> best_temperature(0.5 * right, right, np.ones(2), "softmax") > 10
    True
    """
    if kind == "squared" or outputs.size == 0:
        return 1.0
    loss = "softmax_cross_entropy" if kind == "softmax" else "sigmoid_cross_entropy"
    labels = (targets > 0).astype(np.float64)
    losses = [mean_loss(loss, factor * outputs, labels, weights) for factor in TEMPERATURES]
    return float(TEMPERATURES[int(np.argmin(losses))])


def boundary_shift(outputs: Array, targets: Array, weights: Array, kind: str) -> Array:
    """Return what to subtract from the outputs to move the boundary between unequal classes.

    Least squares with targets of -1 and 1 puts the boundary between classes of unequal size too far
    into the smaller one.  For a class with mean target m and normal outputs, Fisher's discriminant
    puts it at ``u (1 - m^2) artanh(m)`` where least squares has ``u m``; u is the unexplained
    proportion of the variance.  The shift is the difference, with `PRIOR_WEIGHT` as a factor of the
    first.

    Examples
    --------
    >>> targets = np.array([[1.0, -1.0]] * 9 + [[-1.0, 1.0]])
    >>> undecided = np.tile(targets.mean(axis=0), (10, 1))
    >>> boundary_shift(undecided, targets, np.ones(10), "softmax").round(2)
    array([ 0.48, -0.48])
    """
    if kind != "softmax" or outputs.size == 0:
        return np.zeros(targets.shape[1])
    mean = np.clip(np.average(targets, axis=0, weights=weights), -0.999, 0.999)
    variance = 1.0 - mean**2
    errors = np.average(np.square(outputs - targets), axis=0, weights=weights)
    unexplained = min(float(errors.mean() / variance.mean()), 1.0)
    return np.asarray(unexplained * (mean - PRIOR_WEIGHT * variance * np.arctanh(mean)))
