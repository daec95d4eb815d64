"""Kernels on one layer: references for `linear.cpp` and the files in `native/isa`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon.arrays import Array
from ratoon.kernels.reference.random import random_bits
from ratoon.kernels.types import Rule, Step
from ratoon.topology import Topology


def forward(topology: Topology, weights: Array, bias: Array, x: Array) -> Array:
    """Return ``W x + b``, one connection at a time.

    Examples
    --------
    >>> topology = Topology.from_pairs((2, 1), [0, 1], [0, 0])
    >>> forward(topology, np.array([2.0, 3.0]), np.ones(1), np.array([[10.0], [100.0]]))
    array([[321.]])
    """
    inputs, outputs = topology.pairs()
    y = np.repeat(bias[:, np.newaxis], x.shape[1], axis=1)
    np.add.at(y, outputs, weights[:, np.newaxis] * x[inputs])
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
) -> Array:
    """Update the connections in place by the rule, and return the gradient of ``x``.

    Examples
    --------
    >>> topology = Topology.from_pairs((2, 1), [0, 1], [0, 0])
    >>> weights, gradient = np.array([2.0, 3.0]), np.zeros(2)
    >>> x, dy = np.array([[10.0], [100.0]]), np.array([[0.5]])
    >>> backward(topology, Rule.STORE, weights, x, dy, first=gradient)
    array([[1. ],
           [1.5]])
    >>> gradient
    array([ 5., 50.])
    """
    inputs, outputs = topology.pairs()
    dx = np.zeros_like(x)
    np.add.at(dx, inputs, weights[:, np.newaxis] * dy[outputs])
    gradient = (x[inputs] * dy[outputs]).sum(axis=1)
    update(rule, weights, gradient, step or Step(lr=0.0), first=first, second=second)
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
    """Apply a rule to given gradients, in place; the formulas are in `native/rules.hpp`.

    Examples
    --------
    >>> w, v = np.array([1.0]), np.array([0.5])
    >>> update(Rule.MOMENTUM, w, np.array([2.0]), Step(lr=0.1, mu=0.8, shrink=0.01), first=v)
    >>> w, v
    (array([1.19]), array([0.2]))
    """
    if rule == Rule.STORE:
        assert first is not None
        first[:] = gradient
        return
    g = gradient + step.l2 * weights
    if rule == Rule.SGD:
        change = -step.lr * g
    elif rule in (Rule.MOMENTUM, Rule.NESTEROV):
        assert first is not None
        first[:] = step.mu * first - step.lr * g
        change = first if rule == Rule.MOMENTUM else step.mu * first - step.lr * g
    elif rule == Rule.ADAM:
        assert first is not None
        assert second is not None
        first[:] = step.mu * first + (1 - step.mu) * g
        second[:] = step.beta2 * second + (1 - step.beta2) * g**2
        change = -step.lr * first / (np.sqrt(second) * step.correction + step.adam_eps)
    elif rule == Rule.RMSPROP:
        assert first is not None
        first[:] = step.beta2 * first + (1 - step.beta2) * g**2
        change = -step.lr * g / (np.sqrt(first) * step.correction + step.adam_eps)
    else:
        raise ValueError(f"there is no rule {rule!r}")
    weights += change - step.shrink * weights


def drop(rate: float, d: Array, *, seed: int) -> None:
    """Set a random fraction of a flat array to -0 and scale the rest up, in place.

    No other number becomes -0, so the sign of a zero shows whether it was dropped.  A random word
    decides for four entries, 16 bits each.

    Examples
    --------
    >>> d = np.ones(8)
    >>> drop(0.5, d, seed=1)
    >>> d
    array([-0.,  2., -0.,  2.,  2., -0.,  2.,  2.])
    """
    rate, one = d.dtype.type(rate), d.dtype.type(1)
    for k in range(d.size):
        decision = random_bits(seed, k // 4) >> (16 * (k % 4)) & 0xFFFF
        d[k] = -0.0 if decision < int(float(rate) * 65536) else d[k] * (one / (one - rate)) + 0


def normal(size: int, sigma: float, dtype: Any, *, seed: int) -> Array:
    """Draw normal deviates with standard deviation ``sigma``, by the method of Box and Muller.

    Examples
    --------
    >>> normal(3, 1.0, np.float64, seed=0)
    array([-0.49457865,  0.0595664 , -0.8771416 ])
    """
    words = [random_bits(seed, k // 2) for k in range(size)]
    radius = np.array([(word >> 40) + 1 for word in words], dtype=dtype) / 2**24
    angle = np.array([word >> 8 & 0xFFFFFF for word in words], dtype=dtype) / 2**24 * (2 * np.pi)
    out: Array = sigma * np.sqrt(-2 * np.log(radius))
    out[0::2] *= np.cos(angle[0::2])
    out[1::2] *= np.sin(angle[1::2])
    return out.astype(dtype)
