"""The table of losses: what each of them computes, and how raw outputs are read as predictions.

The losses themselves are computed in the native minibatch loop, which looks them up by the names of
this table.  A new one needs a row here, its kernel in ``native/loss.hpp`` and its twin in
`ratoon.kernels.reference.losses`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import InvalidParameterError


@dataclass(frozen=True)
class Loss:
    """One loss.

    Parameters
    ----------
    of_samples : callable
        From raw outputs and targets, both (samples, outputs) in float64, to the loss of every
        sample.
    reading : {"softmax", "sigmoid", "margin"}, optional
        How raw outputs become class probabilities; ``"margin"`` is for targets of -1 and +1.
        Losses without it are not for classes.
    is_for_numbers : bool, default=False
        Whether it can be the loss of a regression.
    """

    of_samples: Callable[[Array, Array], Array]
    reading: Literal["softmax", "sigmoid", "margin"] | None = None
    is_for_numbers: bool = False


def _softmax_cross_entropy(z: Array, t: Array) -> Array:
    top = z.max(axis=1, keepdims=True)
    log_p = z - top - np.log(np.exp(z - top).sum(axis=1, keepdims=True))
    return np.asarray(-(t * log_p).sum(axis=1))


def _sigmoid_cross_entropy(z: Array, t: Array) -> Array:
    each = np.maximum(z, 0) - z * t + np.log1p(np.exp(-np.abs(z)))
    return np.asarray(each.sum(axis=1))


def _squared_error(z: Array, t: Array) -> Array:
    return np.asarray(0.5 * np.square(z - t).sum(axis=1))


def _huber(z: Array, t: Array) -> Array:
    size = np.abs(z - t)
    each = np.where(size <= 1, 0.5 * np.square(size), size - 0.5)
    return np.asarray(each.sum(axis=1))


def _given_gradient(z: Array, t: Array) -> Array:
    return np.asarray((z * t).sum(axis=1))


LOSSES = {
    "softmax_cross_entropy": Loss(_softmax_cross_entropy, reading="softmax"),
    "sigmoid_cross_entropy": Loss(_sigmoid_cross_entropy, reading="sigmoid"),
    "squared_error": Loss(_squared_error, reading="margin", is_for_numbers=True),
    "huber": Loss(_huber, is_for_numbers=True),
    # Of survival: targets are the derivatives of a loss of several samples at once.
    "given_gradient": Loss(_given_gradient),
}
"""Losses by name."""


def probabilities(loss: str, outputs: Array) -> Array:
    """Return the probabilities that raw outputs mean under a loss.

    Examples
    --------
    >>> probabilities("sigmoid_cross_entropy", np.array([[0.0, 100.0]]))
    array([[0.5, 1. ]])
    """
    from scipy.special import expit, softmax  # prediction without compiled code has no SciPy

    reading = LOSSES[loss].reading if loss in LOSSES else None
    if reading == "softmax":
        return np.asarray(softmax(outputs, axis=1))
    if reading == "sigmoid":
        return np.asarray(expit(outputs))
    raise InvalidParameterError(f"the loss {loss!r} has no probabilities.")


def mean_loss(loss: str, outputs: Array, targets: Array, weights: Array | None = None) -> float:
    """Return the weighted mean loss of raw outputs against targets, both (samples, outputs).

    Examples
    --------
    >>> mean_loss("squared_error", np.array([[1.0], [3.0]]), np.array([[1.0], [1.0]]))
    1.0
    """
    if loss not in LOSSES:
        raise InvalidParameterError(f"`loss` must be one of {tuple(LOSSES)}, got {loss!r}.")
    each = LOSSES[loss].of_samples(outputs.astype(np.float64), targets.astype(np.float64))
    return float(np.average(each, weights=weights))
