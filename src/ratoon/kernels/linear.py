"""Kernels on one layer: forward, backward with update, activations, normal deviates.

Rows are neurons and columns are samples; there are 1 or a multiple of 8 columns (`padded` adds
what is missing).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon import _native
from ratoon.arrays import Array
from ratoon.kernels.types import ACTIVATION_NUMBERS, LANES, Rule, Step
from ratoon.topology import Topology


def padded(rows: Array) -> Array:
    """Return rows with zeros added up to a multiple of 8 columns; one column stays one."""
    batch = rows.shape[1]
    if batch == 1:
        return np.ascontiguousarray(rows)
    missing = -batch % LANES
    return np.ascontiguousarray(np.pad(rows, ((0, 0), (0, missing))))


def _empty_rows(n_rows: int, lanes: int, dtype: Any) -> Array:
    """Return memory that is used again once the array is deleted."""
    make = _native.empty_rows_f64 if dtype == np.float64 else _native.empty_rows_f32
    return make(n_rows, lanes)


def rows_of(x: Array, *, n_threads: int = 1) -> Array:
    """Return samples x features, at least one sample, as the padded rows that kernels take.

    Examples
    --------
    >>> rows_of(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))[:, :3]
    array([[1., 4., 0.],
           [2., 5., 0.],
           [3., 6., 0.]])
    """
    batch, n_features = x.shape
    rows = _empty_rows(n_features, 1 if batch == 1 else -(-batch // LANES) * LANES, x.dtype)
    _native.transpose(x, rows, n_threads)
    return rows


def forward(
    topology: Topology, weights: Array, bias: Array, x: Array, *, n_threads: int = 1
) -> Array:
    """Return ``W x + b``: (n_in, lanes) becomes (n_out, lanes).

    Examples
    --------
    >>> topology = Topology.from_pairs((2, 1), [0, 1], [0, 0])
    >>> w, b = np.array([2.0, 3.0], dtype=np.float32), np.ones(1, dtype=np.float32)
    >>> forward(topology, w, b, np.array([[10.0], [100.0]], dtype=np.float32))
    array([[321.]], dtype=float32)
    """
    y = _empty_rows(topology.shape[1], x.shape[1], weights.dtype)
    _native.linear_forward(topology.native, weights, bias, x, y, n_threads)
    return y


def backward(
    topology: Topology,
    rule: Rule,
    weights: Array,
    x: Array,
    dy: Array,
    *,
    first: Array | None = None,
    second: Array | None = None,
    step: Step | None = None,
    with_dx: bool = True,
    n_threads: int = 1,
) -> Array | None:
    """Update the connections in place by the rule, and return the gradient of ``x``.

    Under `Rule.STORE` nothing is updated: the gradient of the weights is written to ``first``.
    The gradient of ``x`` is that of the weights as they were before the update.
    """
    dx = _empty_rows(topology.shape[0], x.shape[1], weights.dtype) if with_dx else None
    native_step = (step or Step(lr=0.0)).native(weights.dtype)
    _native.linear_backward(
        topology.native, int(rule), weights, first, second, native_step, x, dy, dx, n_threads
    )
    return dx


def update(
    rule: Rule,
    weights: Array,
    gradient: Array,
    step: Step,
    *,
    first: Array | None = None,
    second: Array | None = None,
) -> None:
    """Apply a rule to given gradients, in place."""
    _native.update(int(rule), weights, first, second, gradient, step.native(weights.dtype))


def activate(kind: str, y: Array, *, slope: float = 0.0) -> None:
    """Apply an activation in place to a flat array."""
    _native.activate(ACTIVATION_NUMBERS[kind], slope, y)


def derive(kind: str, y: Array, d: Array, *, slope: float = 0.0) -> None:
    """Multiply ``d`` in place by the derivative, computed from the activation's output ``y``.

    For activations in `ratoon.kernels.DERIVED_FROM_INPUT`, ``y`` is the input: their output does
    not determine the derivative.
    """
    _native.derive(ACTIVATION_NUMBERS[kind], slope, y, d)


def drop(rate: float, d: Array, *, seed: int) -> None:
    """Set a random fraction of a flat array to -0 and scale the rest up, in place.

    No other number becomes -0, so the sign of a zero shows whether it was dropped.
    """
    _native.drop(rate, seed, d)


def normal(size: int, sigma: float, dtype: Any, *, seed: int, n_threads: int = 1) -> Array:
    """Draw normal deviates with standard deviation ``sigma``; number k depends on k alone.

    Examples
    --------
    >>> a, b = (normal(n, 1.0, np.float32, seed=0) for n in (5, 9))
    >>> bool(np.all(a == b[:5]))
    True
    """
    out = np.empty(size, dtype=dtype)
    _native.normal(seed, sigma, out, n_threads)
    return out
