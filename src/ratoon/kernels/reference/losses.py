"""Losses of samples and their derivatives: reference for `loss.hpp`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array


def sample_losses(loss: str, output: Array, target: Array) -> tuple[NDArray[np.float64], Array]:
    """Return the loss of every sample (a row) and its derivative by the outputs.

    Examples
    --------
    >>> losses, errors = sample_losses("squared_error", np.array([[1.0, 4.0]]), np.ones((1, 2)))
    >>> losses, errors
    (array([4.5]), array([[0., 3.]]))
    """
    z, t = output.astype(np.float64), target.astype(np.float64)
    if loss == "softmax_cross_entropy":
        shifted = z - z.max(axis=1, keepdims=True)
        log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        losses, errors = -(t * log_p).sum(axis=1), np.exp(log_p) - t
    elif loss == "sigmoid_cross_entropy":
        small = np.exp(-np.abs(z))  # at most 1, so no overflow
        losses = (np.maximum(z, 0) - z * t + np.log1p(small)).sum(axis=1)
        errors = np.where(z >= 0, 1, small) / (1 + small) - t
    elif loss == "squared_error":
        losses, errors = 0.5 * ((z - t) ** 2).sum(axis=1), z - t
    elif loss == "huber":
        errors = np.clip(z - t, -1, 1)  # 0.5 e^2 up to 1, |e| - 0.5 beyond
        losses = (errors * (z - t) - 0.5 * errors**2).sum(axis=1)
    elif loss == "given_gradient":
        losses, errors = (z * t).sum(axis=1), t
    else:
        raise ValueError(f"there is no loss {loss!r}")
    return losses, errors.astype(output.dtype)
