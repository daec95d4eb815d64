"""BoltzmannMachine: a restricted Boltzmann machine with sparse connections.

A restricted Boltzmann machine assigns the energy ``-b.v - c.h - v W h`` to every pair of binary
vectors, visible v and hidden h; a lower energy is more likely.  Given v all h are independent, and
vice versa, so they can be drawn in turn (Gibbs sampling).  Here W is a sparse layer: both
directions and the gradient use the kernels of multilayer perceptrons.

Arrays are neurons x samples, as in the kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon import kernels
from ratoon.arrays import Array
from ratoon.kernels import Rule, Step
from ratoon.kernels.linear import padded
from ratoon.layers import SparseLayer

MAX_AT_ONCE = 2**21
"""Maximum of connections times samples that `pseudo_likelihood` processes at once."""


@dataclass(eq=False)
class BoltzmannMachine:
    """A restricted Boltzmann machine: a layer from visible to hidden neurons, and a visible bias.

    Examples
    --------
    >>> from ratoon.layers import make_layer
    >>> machine = BoltzmannMachine.of(make_layer((6, 4), density=0.5, seed=0))
    >>> machine.hidden(np.zeros((6, 2), dtype=np.float32)).tolist()[0]
    [0.5, 0.5]
    """

    layer: SparseLayer
    visible_bias: Array
    visible_state: list[Array] = field(default_factory=list)
    n_threads: int = 1

    @classmethod
    def of(cls, layer: SparseLayer, *, n_threads: int = 1) -> BoltzmannMachine:
        """Return a machine with a layer and visible biases of 0."""
        layer.activation = "logistic"
        return cls(layer, np.zeros(layer.shape[0], dtype=layer.weights.dtype), n_threads=n_threads)

    def hidden(self, visible: Array) -> Array:
        """Return the probabilities of the hidden neurons, given the visible ones."""
        rows = self._inputs_of_hidden(padded(visible))
        kernels.activate("logistic", rows.reshape(-1))
        return rows[:, : visible.shape[1]]

    def visible(self, hidden: Array) -> Array:
        """Return the probabilities of the visible neurons, given the hidden ones."""
        layer = self.layer
        errors = padded(hidden)
        # The gradient of a layer's inputs is the product with the transposed weights; the gradient
        # of the weights is also computed and not used.
        rows = kernels.backward(
            layer.topology,
            Rule.STORE,
            layer.weights,
            np.zeros((layer.shape[0], errors.shape[1]), dtype=errors.dtype),
            errors,
            first=np.empty_like(layer.weights),
            n_threads=self.n_threads,
        )
        assert rows is not None
        rows += self.visible_bias[:, None]
        kernels.activate("logistic", rows.reshape(-1))
        return rows[:, : hidden.shape[1]]

    def contrast(
        self, visible: Array, rng: np.random.Generator, *, n_gibbs: int = 1
    ) -> tuple[Array, Array]:
        """Return the two sides of contrastive divergence: data, and ``n_gibbs`` Gibbs steps later.

        Both are concatenated: visible rows, and hidden rows with such sign and scale that
        ``visible[i] @ hidden[j]`` is the gradient of the weight from i to j, also for pairs that
        are not connected.
        """
        first = hidden = self.hidden(visible)
        sample = visible
        for _ in range(n_gibbs):
            sample = self.visible(drawn(hidden, rng))
            hidden = self.hidden(sample)
        both = np.concatenate((visible, sample), axis=1)
        return both, np.concatenate((-first, hidden), axis=1) / visible.shape[1]

    def descend(self, contrast: tuple[Array, Array], rule: Rule, step: Step) -> None:
        """Take one optimizer step along a contrast; biases decay only with ``decay="released"``."""
        visible, hidden = contrast
        layer = self.layer
        first, second = (*layer.state, None, None)[:2]
        kernels.backward(
            layer.topology,
            rule,
            layer.weights,
            padded(visible),
            padded(hidden),
            first=first,
            second=second,
            step=step,
            with_dx=False,
            n_threads=self.n_threads,
        )
        n_samples = visible.shape[1] // 2
        change = (visible[:, n_samples:] - visible[:, :n_samples]).mean(axis=1)
        for bias, states, gradient in (
            (layer.bias, layer.bias_state, hidden.sum(axis=1)),
            (self.visible_bias, self.visible_state, change),
        ):
            first, second = (*states, None, None)[:2]
            kernels.update(rule, bias, gradient, step.of_biases(), first=first, second=second)

    def clear_state(self, n_arrays: int) -> None:
        """Replace the optimizer state by this many arrays of zeros per parameter."""
        self.layer.clear_state(n_arrays)
        self.visible_state = [np.zeros_like(self.visible_bias) for _ in range(n_arrays)]

    def pseudo_likelihood(self, visible: Array) -> NDArray[np.float64]:
        """Return the exact log pseudo-likelihood of every column.

        It is the sum, over visible neurons, of the log probability of each given all others.
        Flipping a visible neuron changes only the inputs of the hidden neurons connected to it, so
        the total time is proportional to the number of connections.
        """
        weights = self.layer.to_csr()
        n_connections = max(weights.nnz, 1)
        width = max(1, MAX_AT_ONCE // n_connections)
        parts = [
            self._pseudo_likelihood(visible[:, first : first + width], weights)
            for first in range(0, visible.shape[1], width)
        ]
        return np.concatenate(parts)

    def _pseudo_likelihood(self, visible: Array, weights: Any) -> NDArray[np.float64]:
        n_samples = visible.shape[1]
        # Always multiples of eight: the result of a sample must not depend on their number.
        lanes = np.zeros((visible.shape[0], -(-n_samples // 8) * 8), dtype=visible.dtype)
        lanes[:, :n_samples] = visible
        inputs = self._inputs_of_hidden(lanes)[:, :n_samples].astype(np.float64)
        flip = 1.0 - 2.0 * visible.astype(np.float64)
        at, before = weights.indices, np.logaddexp(0.0, inputs)
        owners = np.repeat(np.arange(visible.shape[0]), np.diff(weights.indptr))
        after = inputs[at] + weights.data[:, None] * flip[owners]
        np.logaddexp(0.0, after, out=after)
        after -= before[at]
        loss = self.visible_bias[:, None] * flip
        has_any = np.diff(weights.indptr) > 0
        if has_any.any():
            loss[has_any] += np.add.reduceat(after, weights.indptr[:-1][has_any], axis=0)
        # log sigmoid(-loss): the log probability of the neuron's value against the flipped one.
        likelihood: NDArray[np.float64] = -np.logaddexp(0.0, loss).sum(axis=0)
        return likelihood

    def _inputs_of_hidden(self, rows: Array) -> Array:
        layer = self.layer
        return kernels.forward(
            layer.topology, layer.weights, layer.bias, rows, n_threads=self.n_threads
        )


def drawn(probabilities: Array, rng: np.random.Generator) -> Array:
    """Return random zeros and ones, with the given probabilities of ones.

    Examples
    --------
    >>> drawn(np.array([0.0, 1.0]), np.random.default_rng(0))
    array([0., 1.])
    """
    kind = np.float64 if probabilities.dtype == np.float64 else np.float32
    uniform = rng.random(probabilities.shape, dtype=kind)
    return (uniform < probabilities).astype(probabilities.dtype)
