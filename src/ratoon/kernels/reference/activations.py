"""Activations and their derivatives: references for `native/isa/activations.hpp`."""

from __future__ import annotations

import numpy as np

from ratoon.arrays import Array

_CAPS = {"relu6": 6.0, "relu32": 32.0}

DERIVED_FROM_INPUT = {"all_relu", "silu", "relu6", "relu32"}
"""Activations whose output does not determine the derivative.

The slope of All-ReLU may be negative, and then both a positive and a negative input give a positive
output; SiLU falls and rises again; with dropout an output does not show whether it was the cap.
"""


def activate(kind: str, y: Array, *, slope: float = 0.0) -> None:
    """Apply an activation in place.

    Examples
    --------
    >>> y = np.array([-2.0, 0.0, 3.0])
    >>> activate("leaky_relu", y, slope=0.1)
    >>> y
    array([-0.2, 0. , 3. ])
    """
    if kind == "relu":
        y[y < 0] = 0
    elif kind in _CAPS:
        np.clip(y, 0, _CAPS[kind], out=y)
    elif kind in ("leaky_relu", "all_relu"):
        y[y < 0] *= slope
    elif kind == "tanh":
        y[...] = np.tanh(y)
    elif kind == "logistic":
        y[...] = _logistic(y)
    elif kind == "silu":
        y *= _logistic(y)
    elif kind == "elu":
        y[y < 0] = slope * np.expm1(y[y < 0])
    elif kind != "identity":
        raise ValueError(f"there is no activation {kind!r}")


def derive(kind: str, y: Array, d: Array, *, slope: float = 0.0) -> None:
    """Multiply ``d`` in place by the derivative, computed from the activation's output ``y``.

    For activations in `DERIVED_FROM_INPUT`, ``y`` is the input.

    Examples
    --------
    >>> d = np.ones(2)
    >>> derive("tanh", np.tanh(np.array([0.0, 1.0])), d)
    >>> d
    array([1.  , 0.41997434])
    """
    if kind == "relu":
        d *= y > 0
    elif kind in _CAPS:
        d *= (y > 0) & (y < _CAPS[kind])
    elif kind == "leaky_relu":
        d[~(y > 0)] *= slope
    elif kind == "all_relu":
        d[y < 0] *= slope
    elif kind == "tanh":
        d *= 1 - y**2
    elif kind == "logistic":
        d *= y * (1 - y)
    elif kind == "silu":
        s = _logistic(y)
        d *= s * (1 + y * (1 - s))
    elif kind == "elu":
        d[~(y > 0)] *= y[~(y > 0)] + slope
    elif kind != "identity":
        raise ValueError(f"there is no activation {kind!r}")


def _logistic(z: Array) -> Array:
    # Written with exp(-|z|), which is at most 1, so that nothing overflows.
    small = np.exp(-np.abs(z))
    return np.asarray(np.where(z >= 0, 1, small) / (1 + small))
