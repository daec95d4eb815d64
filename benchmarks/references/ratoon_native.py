"""Ratoon itself, behind the interface of the references."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ratoon import kernels
from ratoon.kernels import Rule, Step, as_samples
from ratoon.kernels.linear import padded
from ratoon.layers import make_layer
from ratoon.network import SparseMLP
from references.base import Reference
from references.start import Array, Start


class RatoonNetwork(Reference):
    """The native minibatch loop; its threads as many as OMP_NUM_THREADS says."""

    neuron_major = True

    def __init__(self, start: Start) -> None:
        assert start.network is not None
        self.hyper = start.hyper
        self.network = start.network
        self.n_layers = len(self.network.layers)
        self.n_threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
        for layer in self.network.layers:
            layer.clear_state(1)
        self.native = self.network.native("softmax_cross_entropy", self.n_threads)
        self.rule = Step(self.hyper.lr, mu=self.hyper.momentum, shrink=self.hyper.decay)
        self.bias_rule = Step(self.hyper.lr, mu=self.hyper.momentum)

    def train(self, x: Array, targets: Array, batch: int) -> list[float]:
        """Train on all samples in one native call; return their mean loss."""
        order = np.arange(x.shape[0], dtype=np.int64)
        steps = [self.rule] * -(-x.shape[0] // batch)
        samples = as_samples(x, np.float32)
        outcome = self.native.train(samples, targets, order, batch, Rule.MOMENTUM, steps)
        if outcome.diverged:  # and so left most of its steps out
            raise RuntimeError("the training diverged; its time says nothing")
        return [outcome.loss]

    def step(self, x: Array, targets: Array) -> float:
        """Train on one minibatch; return its mean loss before the update."""
        return self.train(x, targets, x.shape[0])[0]

    # The hidden layers alone, as they are trained: in the native loop.  That loop begins with
    # samples and ends with an output, so turning the samples and one output neuron come on top.

    def enter_hidden(self, x: Array, error: Array) -> Any:
        """Return the hidden layers with one output neuron behind them, and the samples."""
        width = error.shape[1]
        output = make_layer((width, 1), density=1.0, init="set", seed=0)
        output.clear_state(1)
        network = SparseMLP([*self.network.layers[:-1], output])
        targets = np.arange(x.shape[0], dtype=np.float32).reshape(-1, 1) % 2
        return network.native("sigmoid_cross_entropy", self.n_threads), x, targets

    def hidden_steps(self, entered: Any, n_steps: int) -> None:
        """Train on the same minibatch so many times, in one native call."""
        native, x, targets = entered
        order = np.tile(np.arange(x.shape[0], dtype=np.int64), n_steps)
        steps = [self.rule] * n_steps
        samples = as_samples(x, np.float32)
        native.train(samples, targets, order, x.shape[0], Rule.MOMENTUM, steps)

    # Layer by layer, to compare the results.

    def enter(self, x: Array) -> Any:
        """Turn samples into neuron-major rows of whole vectors."""
        return padded(np.ascontiguousarray(x.T))

    def forward(self, layer: int, a: Array) -> Array:
        """Return W a + b."""
        one = self.network.layers[layer]
        return kernels.forward(one.topology, one.weights, one.bias, a, n_threads=self.n_threads)

    def backward(self, layer: int, a: Array, delta: Array, with_dx: bool) -> Any:
        """Update the weights in the same pass that finds their gradients."""
        one = self.network.layers[layer]
        dx = kernels.backward(
            one.topology,
            Rule.MOMENTUM,
            one.weights,
            a,
            delta,
            first=one.state[0],
            step=self.rule,
            with_dx=with_dx,
            n_threads=self.n_threads,
        )
        sums = delta @ np.ones(delta.shape[1], dtype=np.float32)
        kernels.update(Rule.MOMENTUM, one.bias, sums, self.bias_rule, first=one.bias_state[0])
        return dx

    def relu(self, z: Array) -> Array:
        """Return max(z, 0)."""
        kernels.activate("relu", z.reshape(-1))
        return z

    def where_active(self, dx: Array, a: Array) -> Array:
        """Return the error before the ReLU whose output was ``a``, in place."""
        kernels.derive("relu", a.reshape(-1), dx.reshape(-1))
        return dx
