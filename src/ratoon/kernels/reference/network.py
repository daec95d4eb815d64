"""Whole networks, minibatch by minibatch: twin of `network.cpp`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.kernels.network import NO_SCALING, EpochOutcome
from ratoon.kernels.reference.activations import DERIVED_FROM_INPUT, activate, derive
from ratoon.kernels.reference.linear import backward, drop, forward, update
from ratoon.kernels.reference.losses import sample_losses
from ratoon.kernels.reference.random import random_bits
from ratoon.kernels.types import LANES, Rule, Scaling, Step, block_lanes
from ratoon.topology import Topology

Blocks = list[tuple[int, int]]
"""The blocks of a minibatch, in order: the samples and the lanes of each."""


@dataclass(frozen=True, eq=False)
class Layer:
    """A topology, arrays aligned with it, and what is applied to its outputs."""

    topology: Topology
    weights: Array
    bias: Array
    state: Sequence[Array]
    bias_state: Sequence[Array]
    activation: str
    slope: float
    dropout: float


@dataclass(eq=False)
class Flow:
    """Activations and errors of one layer for one minibatch, (neurons, samples)."""

    x: Array
    before: Array  # before activation
    after: Array  # after activation, before dropout
    factors: Array  # of dropout: 0, or 1 / (1 - rate)
    error: Array  # derivative of the loss by `before`; set in the backward pass

    @property
    def y(self) -> Array:
        """Return the input of the next layer."""
        return self.after * self.factors


class ReferenceNetwork:
    """Consecutive layers; their arrays belong to the caller and are changed in place.

    The methods are those of `ratoon.kernels.NativeNetwork`, but take an array or a SciPy matrix
    as samples.

    Examples
    --------
    >>> network = ReferenceNetwork("squared_error")
    >>> weights, bias = np.array([2.0]), np.array([1.0])
    >>> network.add_layer(Topology.full((1, 1)), weights, bias)
    >>> x, y = np.array([[3.0]]), np.array([[6.0]])
    >>> network.train(x, y, np.array([0]), 1, Rule.SGD, [Step(lr=0.1)]).loss
    0.5
    >>> network.predict(x)  # weight 2 - 0.1 * 3, bias 1 - 0.1
    array([[6.]])
    """

    def __init__(self, loss: str) -> None:
        self.loss = loss
        self.layers: list[Layer] = []

    def add_layer(
        self,
        topology: Topology,
        weights: Array,
        bias: Array,
        *,
        state: Sequence[Array] = (),
        bias_state: Sequence[Array] = (),
        activation: str = "identity",
        slope: float = 0.0,
        dropout: float = 0.0,
    ) -> None:
        """Append a layer; ``state`` has the optimizer's arrays per connection, at most two."""
        self.layers.append(
            Layer(topology, weights, bias, state, bias_state, activation, slope, dropout)
        )

    def train(
        self,
        samples: Any,
        targets: Array,
        order: NDArray[np.int64],
        batch: int,
        rule: Rule,
        steps: Sequence[Step],
        *,
        sample_weights: Array | None = None,
        offset: Array | None = None,
        scaling: Scaling = NO_SCALING,
        dropout_seed: int = 0,
        first_step: int = 0,
    ) -> EpochOutcome:
        """Train on the samples named by ``order``, minibatch by minibatch, the last one short."""
        weights = np.ones(len(targets)) if sample_weights is None else sample_weights
        x = as_read(samples, scaling)
        widest = min(batch, order.size)
        in_blocks = widest > self._block() and not is_read_sparsely(samples, batch)
        total = total_weight = 0.0
        for done, step in enumerate(steps):
            rows = order[done * batch : (done + 1) * batch]
            blocks = (
                blocks_of(rows.size, self._block())
                if in_blocks
                else [(rows.size, lanes_of(widest))]
            )
            flows = self._forward(x[rows].T, blocks, dropout_seed, first_step + done)
            loss = self._output_error(flows[-1], targets, rows, weights, offset)
            total += loss
            total_weight += float(weights[rows].sum())
            if not np.isfinite(loss):
                return EpochOutcome(mean_of(total, total_weight), done + 1, diverged=True)
            self._backward(flows, rule, step)
        return EpochOutcome(mean_of(total, total_weight), len(steps), diverged=False)

    def predict(
        self, samples: Any, *, scaling: Scaling = NO_SCALING, layer: int | None = None
    ) -> Array:
        """Return the raw outputs of every sample, or the activations of one hidden layer."""
        y = as_read(samples, scaling).T
        for each in self.layers[: len(self.layers) if layer is None else layer + 1]:
            y = forward(each.topology, each.weights, each.bias, y)
            activate(each.activation, y, slope=each.slope)
        return y.T

    def signals(
        self,
        samples: Any,
        targets: Array,
        order: NDArray[np.int64],
        *,
        sample_weights: Array | None = None,
        offset: Array | None = None,
        scaling: Scaling = NO_SCALING,
        dropout_seed: int = 0,
        step: int = 0,
    ) -> list[tuple[Array, Array]]:
        """Return (activations, errors) of every layer for one minibatch."""
        weights = np.ones(len(targets)) if sample_weights is None else sample_weights
        blocks = [(order.size, lanes_of(order.size))]
        flows = self._forward(as_read(samples, scaling)[order].T, blocks, dropout_seed, step)
        self._output_error(flows[-1], targets, order, weights, offset)
        self._backward(flows, Rule.SGD, Step(lr=0.0))
        return [(flow.x, flow.error) for flow in flows]

    def gradients(
        self,
        samples: Any,
        targets: Array,
        order: NDArray[np.int64],
        *,
        sample_weights: Array | None = None,
        offset: Array | None = None,
        scaling: Scaling = NO_SCALING,
        dropout_seed: int = 0,
        step: int = 0,
        out: tuple[list[Array], list[Array]] | None = None,
    ) -> tuple[float, list[Array], list[Array]]:
        """Return mean loss over the samples of ``order``, and its gradients; update nothing."""
        weights = np.ones(len(targets)) if sample_weights is None else sample_weights
        x = as_read(samples, scaling)[order].T
        flows = self._forward(x, blocks_of(order.size, self._block()), dropout_seed, step)
        total = self._output_error(flows[-1], targets, order, weights, offset)
        self._backward(flows, Rule.SGD, Step(lr=0.0))
        of_weights, of_biases = out or (
            [np.empty_like(layer.weights) for layer in self.layers],
            [np.empty_like(layer.bias) for layer in self.layers],
        )
        for number, (layer, flow) in enumerate(zip(self.layers, flows, strict=True)):
            first = of_weights[number]
            backward(layer.topology, Rule.STORE, layer.weights, flow.x, flow.error, first=first)
            of_biases[number][:] = flow.error.sum(axis=1)
        return mean_of(total, float(weights[order].sum())), of_weights, of_biases

    def _block(self) -> int:
        shapes = [layer.topology.shape for layer in self.layers]
        return block_lanes(max(max(shape) for shape in shapes))

    def _forward(self, x: Array, blocks: Blocks, dropout_seed: int, step: int) -> list[Flow]:
        flows: list[Flow] = []
        for number, layer in enumerate(self.layers):
            before = forward(layer.topology, layer.weights, layer.bias, x)
            after = before.copy()
            activate(layer.activation, after, slope=layer.slope)
            factors = np.ones_like(before)
            if layer.dropout > 0:
                counter = step * 1024 + number
                factors[:] = dropout_factors(
                    before.shape[0], blocks, layer.dropout, dropout_seed, counter, x.dtype
                )
            flows.append(Flow(x, before, after, factors, np.zeros_like(before)))
            x = flows[-1].y
        return flows

    def _output_error(
        self,
        flow: Flow,
        targets: Array,
        rows: NDArray[np.int64],
        weights: Array,
        offset: Array | None,
    ) -> float:
        """Fill in the error of the last layer; return the loss, summed over the minibatch."""
        output = flow.y.T if offset is None else flow.y.T + offset[rows]
        losses, errors = sample_losses(self.loss, output, targets[rows])
        counts = weights[rows] > 0
        fraction = weights[rows][counts] / weights[rows].sum() if counts.any() else 0.0
        flow.error[:, counts] = errors[counts].T * fraction
        return float((losses[counts] * weights[rows][counts]).sum())

    def _backward(self, flows: list[Flow], rule: Rule, step: Step) -> None:
        for number in reversed(range(len(self.layers))):
            layer, flow = self.layers[number], flows[number]
            first, second = (*layer.state, None, None)[:2]
            dx = backward(
                layer.topology,
                rule,
                layer.weights,
                flow.x,
                flow.error,
                first=first,
                second=second,
                step=step,
            )
            first, second = (*layer.bias_state, None, None)[:2]
            gradient = flow.error.sum(axis=1)
            update(rule, layer.bias, gradient, step.of_biases(), first=first, second=second)
            if number > 0:
                self._send_back(dx, self.layers[number - 1], flows[number - 1])

    @staticmethod
    def _send_back(dy: Array, layer: Layer, flow: Flow) -> None:
        """Convert the error after a layer's activation into the error before it."""
        flow.error = dy * flow.factors
        known = flow.before if layer.activation in DERIVED_FROM_INPUT else flow.after
        derive(layer.activation, known, flow.error, slope=layer.slope)


def as_read(samples: Any, scaling: Scaling) -> Array:
    """Return samples as dense rows, shifted, scaled and clipped."""
    x: Array = samples.toarray() if scipy.sparse.issparse(samples) else np.asarray(samples)
    if scaling.shift is not None:
        x = x - scaling.shift
    if scaling.scale is not None:
        x = x * scaling.scale
    return np.clip(x, -scaling.clip, scaling.clip) if scaling.clip > 0 else x


def lanes_of(batch: int) -> int:
    """Return how many columns a minibatch occupies: 1, or a multiple of 8."""
    return 1 if batch == 1 else -(-batch // LANES) * LANES


def mean_of(total: float, weight: float) -> float:
    """Return the weighted mean, or 0 if all weights are 0."""
    return total / weight if weight > 0 else 0.0


def blocks_of(batch: int, block: int) -> Blocks:
    """Return the blocks of a minibatch.

    Examples
    --------
    >>> blocks_of(75, 32)
    [(32, 32), (32, 32), (11, 16)]
    """
    sizes = [min(block, batch - first) for first in range(0, batch, block)]
    return [(size, lanes_of(size)) for size in sizes]


def is_read_sparsely(samples: Any, batch: int) -> bool:
    """Return whether training reads stored entries only, which it does if they are rare."""
    if not scipy.sparse.issparse(samples):
        return False
    n_rows, n_features = samples.shape
    per_row = samples.nnz / n_rows
    return bool(per_row * batch < 0.02 * max(batch, LANES) * n_features)


def dropout_factors(
    n_rows: int, blocks: Blocks, rate: float, seed: int, counter: int, dtype: Any
) -> Array:
    """Return 0 or 1 / (1 - rate) for every neuron and sample of a minibatch.

    Every block has its own random numbers.  They are numbered over rows of all its lanes, even
    if it has fewer samples.
    """
    parts = []
    for number, (size, lanes) in enumerate(blocks):
        factors = np.ones(n_rows * lanes, dtype=dtype)
        drop(rate, factors, seed=random_bits(seed, counter + (number << 40)))
        parts.append(factors.reshape(-1, lanes)[:, :size])
    return np.hstack(parts)
