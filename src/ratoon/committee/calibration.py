"""From ridge outputs to classes and probabilities: where the boundary lies, and how sure to be."""

from __future__ import annotations

import numpy as np

from ratoon.arrays import Array
from ratoon.losses import mean_loss

CANDIDATES = np.logspace(-0.5, 1.2, 35)

PRIOR_WEIGHT = 0.8
"""How much the frequencies of classes count; 1 takes those of the training rows as they are."""


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


def boundary_shift(outputs: Array, targets: Array, weights: Array, kind: str) -> Array:
    """Return what to subtract from outputs so that classes of unequal size meet where they should.

    Least squares puts the boundary between two classes too far into the smaller one.  Where
    outputs of a class are normal around its mean, and m is the mean of the targets (-1 and 1),
    least squares gives an undecided sample ``m`` times the unexplained share of the variance,
    Fisher's discriminant ``(1 - m^2) artanh(m)`` times it.  The difference is small for two classes
    and large for many, which are all rare.  Outputs are for samples that were held out.

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
    spread = 1.0 - mean**2
    errors = np.average(np.square(outputs - targets), axis=0, weights=weights)
    unexplained = min(float(errors.mean() / spread.mean()), 1.0)
    return np.asarray(unexplained * (mean - PRIOR_WEIGHT * spread * np.arctanh(mean)))
