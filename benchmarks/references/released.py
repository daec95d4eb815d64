"""The computation of the authors' released code, for comparing accuracy, not speed.

A new implementation of what that code does where it differs from the paper: outputs are sigmoids,
and the sigmoid's derivative is taken of what the sigmoid gave, so that an error of p - y counts 0.2
to 0.25 times; decay is not multiplied by the learning rate, and biases decay too; a short last
minibatch is left out; features are divided by their spread + 0.0001; everything is float64.  It
also takes test rows of a short last batch for class 0, which is left out here: that would only make
it worse.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ratoon.evolution.contrib.paper import rewire_vectorised

Array = NDArray[np.float64]


class ReleasedMLP:
    """A network of ReLU layers with sigmoid outputs, trained the way of the released code."""

    def __init__(self, widths: tuple[int, ...], epsilon: float, rng: np.random.Generator) -> None:
        self.rng = rng
        self.weights = [started(n_in, n_out, epsilon, rng) for n_in, n_out in pairwise(widths)]
        self.velocities = [np.zeros_like(weights.data) for weights in self.weights]
        self.biases = [np.zeros(width) for width in widths[1:]]
        self.bias_velocities = [np.zeros(width) for width in widths[1:]]

    def activations(self, x: Array) -> list[Array]:
        """Return samples, hidden layers and outputs."""
        found = [x]
        for weights, bias in zip(self.weights, self.biases, strict=True):
            found.append(found[-1] @ weights + bias)
            if len(found) <= len(self.weights):
                np.maximum(found[-1], 0.0, out=found[-1])
        found[-1] = sigmoid(found[-1])
        return found

    def step(self, x: Array, targets: Array, learning_rate: float) -> None:
        """Learn one minibatch."""
        found = self.activations(x)
        delta = (found[-1] - targets) * sigmoid(found[-1]) * (1 - sigmoid(found[-1]))
        for layer in reversed(range(len(self.weights))):
            weights, below = self.weights[layer], found[layer]
            delta_below = (delta @ weights.T) * (below > 0) if layer > 0 else None
            inputs, outputs = np.divmod(places(weights), weights.shape[1])
            gradient = np.zeros(weights.nnz)
            for below_b, delta_b in zip(below, delta, strict=True):
                gradient += below_b.take(inputs) * delta_b.take(outputs)
            self._update(weights.data, self.velocities[layer], gradient / len(x), learning_rate)
            mean = delta.mean(axis=0)
            self._update(self.biases[layer], self.bias_velocities[layer], mean, learning_rate)
            if delta_below is not None:
                delta = delta_below

    @staticmethod
    def _update(values: Array, velocity: Array, gradient: Array, learning_rate: float) -> None:
        velocity *= 0.9
        velocity -= learning_rate * gradient
        values += velocity - 0.0002 * values

    def rewire(self, zeta: float) -> None:
        """Replace connections; those that stay keep their momentum."""
        for layer, before in enumerate(self.weights):
            after = rewire_vectorised(before, zeta, self.rng)
            after.sort_indices()
            found = np.minimum(np.searchsorted(places(before), places(after)), before.nnz - 1)
            # A place that was left and drawn again has another weight.
            stays = (places(before)[found] == places(after)) & (before.data[found] == after.data)
            velocity = np.where(stays, self.velocities[layer][found], 0.0)
            self.weights[layer], self.velocities[layer] = after, velocity


def started(n_in: int, n_out: int, epsilon: float, rng: np.random.Generator) -> Any:
    """Draw places with repetition, as the released code does, and weights of spread 0.1."""
    n_draws = int(epsilon * (n_in + n_out))
    drawn = np.unique(rng.integers(n_in, size=n_draws) * n_out + rng.integers(n_out, size=n_draws))
    values = 0.1 * rng.standard_normal(drawn.size)
    coords = (drawn // n_out, drawn % n_out)
    return scipy.sparse.coo_array((values, coords), shape=(n_in, n_out)).tocsr()


def places(matrix: Any) -> NDArray[np.int64]:
    """Return one number for the place of every connection, in ascending order."""
    inputs = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
    return inputs * matrix.shape[1] + matrix.indices


def sigmoid(z: Array) -> Array:
    """Return 1 / (1 + exp(-z)), without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * z))


def accuracies(
    x: NDArray[Any],
    targets: NDArray[Any],
    x_test: NDArray[Any],
    targets_test: NDArray[Any],
    *,
    hidden: tuple[int, ...],
    epsilon: float,
    zeta: float,
    learning_rate: float,
    n_epochs: int,
    seed: int,
) -> list[float]:
    """Train, rewire after every epoch if zeta is above 0, return the accuracy after each, in %."""
    rng = np.random.default_rng(seed)
    mean, spread = x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64) + 0.0001
    x, x_test = (x - mean) / spread, (x_test - mean) / spread
    network = ReleasedMLP((x.shape[1], *hidden, targets.shape[1]), epsilon, rng)
    batch, found = 5, []
    for epoch in range(n_epochs):
        order = rng.permutation(len(x))
        for first in range(0, len(x) // batch * batch, batch):
            rows = order[first : first + batch]
            network.step(x[rows], targets[rows], learning_rate)
        said = network.activations(x_test)[-1].argmax(axis=1)
        found.append(100.0 * float(np.mean(said == targets_test.argmax(axis=1))))
        if zeta > 0 and epoch < n_epochs - 1:
            network.rewire(zeta)
    return found
