"""What every reference has in common: the loop over layers, ReLU, softmax, minibatches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from common.models import Model

from references.start import Array, Start


class Reference(ABC):
    """A network that trains by minibatches.

    Subclasses say how a layer goes forward and backward; rows of activations are samples, or
    neurons where ``neuron_major`` says so.
    """

    neuron_major = False
    takes_start = True
    """Whether the network begins with the weights and connections it is given."""

    def __init__(self, start: Start) -> None:
        self.hyper = start.hyper
        self.n_layers = len(start.matrices)

    @staticmethod
    def why_not(model: Model, limit_bytes: float) -> str | None:
        """Return why the model cannot be tried within the memory limit, or None."""
        del model, limit_bytes
        return None

    # -------------------------------------------------------------------------------- one layer

    @abstractmethod
    def forward(self, layer: int, a: Any) -> Any:
        """Return W a + b."""

    @abstractmethod
    def backward(self, layer: int, a: Any, delta: Any, with_dx: bool) -> Any:
        """Update the layer's weights; return the error at its inputs, by the old weights."""

    def enter(self, x: Array) -> Any:
        """Turn samples x features into what `forward` takes."""
        return np.ascontiguousarray(x.T) if self.neuron_major else x

    # ------------------------------------------------------------------------------- whole steps

    def step(self, x: Array, targets: Array) -> float:
        """Train on one minibatch; return its mean loss before the update."""
        activations = [self.enter(x)]
        for layer in range(self.n_layers):
            z = self.forward(layer, activations[-1])
            activations.append(z if layer == self.n_layers - 1 else self.relu(z))
        loss, delta = self.output_error(activations.pop(), targets)
        for layer in reversed(range(self.n_layers)):
            a = activations[layer]
            dx = self.backward(layer, a, delta, layer > 0)
            if layer > 0:
                delta = self.where_active(dx, a)
        return loss

    def hidden_step(self, entered: Any, error: Any) -> None:
        """Do the part of a step that happens in the hidden layers, from a given error."""
        activations = [entered]
        for layer in range(self.n_layers - 1):
            activations.append(self.relu(self.forward(layer, activations[-1])))
        delta = self.where_active(error, activations.pop())
        for layer in reversed(range(self.n_layers - 1)):
            a = activations[layer]
            dx = self.backward(layer, a, delta, layer > 0)
            if layer > 0:
                delta = self.where_active(dx, a)

    def enter_hidden(self, x: Array, error: Array) -> Any:
        """Bring a minibatch, and the error after the last hidden layer, into the form needed."""
        return self.enter(x), self.enter(error)

    def hidden_steps(self, entered: Any, n_steps: int) -> None:
        """Do so many of these steps."""
        for _ in range(n_steps):
            self.hidden_step(*entered)

    def train(self, x: Array, targets: Array, batch: int) -> list[float]:
        """Train on all samples in their order, minibatch by minibatch; return the losses."""
        return [
            self.step(x[at : at + batch], targets[at : at + batch])
            for at in range(0, x.shape[0], batch)
        ]

    # ------------------------------------------------------------------------------ small parts

    def relu(self, z: Any) -> Any:
        """Return max(z, 0)."""
        return np.maximum(z, 0, out=z)

    def where_active(self, dx: Any, a: Any) -> Any:
        """Return the error before the ReLU whose output was ``a``."""
        return dx * (a > 0)

    def output_error(self, z: Any, targets: Array) -> tuple[float, Any]:
        """Return the mean softmax cross-entropy, and its derivative by ``z``."""
        by_sample = z.T if self.neuron_major else z
        shifted = by_sample - by_sample.max(axis=1, keepdims=True)
        log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        loss = float(-(targets * log_p).sum() / targets.shape[0])
        delta = (np.exp(log_p) - targets) / np.float32(targets.shape[0])
        return loss, np.ascontiguousarray(delta.T) if self.neuron_major else delta


def updated(
    values: Array, velocity: Array, gradient: Array, lr: float, momentum: float, decay: float
) -> None:
    """Apply the paper's update in place."""
    velocity *= np.float32(momentum)
    velocity -= np.float32(lr) * gradient
    values *= np.float32(1.0 - decay)
    values += velocity


def biases_of(start: Start) -> Iterator[Array]:
    """Return a bias of zeros per layer."""
    for matrix in start.matrices:
        yield np.zeros(matrix.shape[1], dtype=np.float32)
