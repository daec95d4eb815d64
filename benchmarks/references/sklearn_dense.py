"""Scikit-learn's dense MLPClassifier: the network most users would start with."""

from __future__ import annotations

import numpy as np
from common.models import Model
from sklearn.neural_network import MLPClassifier

from references.base import Reference
from references.start import Array, Start


class SklearnDense(Reference):
    """All connections there can be, momentum SGD, one `partial_fit` per minibatch.

    It begins with weights of its own; its rate of work is what is compared.
    """

    takes_start = False

    def __init__(self, start: Start) -> None:
        super().__init__(start)
        hidden = tuple(matrix.shape[1] for matrix in start.matrices[:-1])
        self.n_classes = start.matrices[-1].shape[1]
        self.network = MLPClassifier(
            hidden,
            solver="sgd",
            learning_rate_init=start.hyper.lr,
            momentum=start.hyper.momentum,
            nesterovs_momentum=False,
            alpha=start.hyper.decay,
            shuffle=False,
            random_state=0,
        )

    @staticmethod
    def why_not(model: Model, limit_bytes: float) -> str | None:
        """Weights, gradients, velocities and one temporary are dense."""
        needed = 4 * model.dense_bytes
        return f"needs {needed / 1e9:.1f} GB" if needed > limit_bytes else None

    def step(self, x: Array, targets: Array) -> float:
        """Train on one minibatch."""
        self.network.set_params(batch_size=x.shape[0])
        classes = np.arange(self.n_classes)
        self.network.partial_fit(x, targets.argmax(axis=1), classes=classes)
        return float(self.network.loss_)

    def forward(self, layer: int, a: Array) -> Array:
        """Not to be had by the layer."""
        raise NotImplementedError

    def backward(self, layer: int, a: Array, delta: Array, with_dx: bool) -> Array:
        """Not to be had by the layer."""
        raise NotImplementedError
