"""Losses in NumPy: probabilities and the mean loss of raw outputs.

Training computes losses and their gradients natively; `ratoon.kernels.reference` has the gradients
in NumPy.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit, softmax

from ratoon.arrays import Array
from ratoon.errors import InvalidParameterError
from ratoon.kernels import LOSSES


def probabilities(loss: str, outputs: Array) -> Array:
    """Return the probabilities that raw outputs mean under a loss.

    Examples
    --------
    >>> probabilities("sigmoid_cross_entropy", np.array([[0.0, 100.0]]))
    array([[0.5, 1. ]])
    """
    if loss == "softmax_cross_entropy":
        return np.asarray(softmax(outputs, axis=1))
    if loss == "sigmoid_cross_entropy":
        return np.asarray(expit(outputs))
    raise InvalidParameterError(f"the loss {loss!r} has no probabilities.")


def mean_loss(loss: str, outputs: Array, targets: Array, weights: Array | None = None) -> float:
    """Return the weighted mean loss of raw outputs against targets, both (samples, outputs).

    Examples
    --------
    >>> mean_loss("squared_error", np.array([[1.0], [3.0]]), np.array([[1.0], [1.0]]))
    1.0
    """
    z, t = outputs.astype(np.float64), targets.astype(np.float64)
    if loss == "softmax_cross_entropy":
        top = z.max(axis=1, keepdims=True)
        log_p = z - top - np.log(np.exp(z - top).sum(axis=1, keepdims=True))
        each = -(t * log_p).sum(axis=1)
    elif loss == "sigmoid_cross_entropy":
        each = (np.maximum(z, 0) - z * t + np.log1p(np.exp(-np.abs(z)))).sum(axis=1)
    elif loss == "squared_error":
        each = 0.5 * np.square(z - t).sum(axis=1)
    else:
        raise InvalidParameterError(f"`loss` must be one of {tuple(LOSSES)}, got {loss!r}.")
    return float(np.average(each, weights=weights))
