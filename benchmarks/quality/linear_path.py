"""A linear path from the features to the outputs, trained together with a network.

Its outputs are added to those of the network, so both learn from the error of the sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.evolution import Clock
from ratoon.kernels import as_samples
from ratoon.training import Training

Array = NDArray[Any]

MOMENTUM = 0.9


class LinearPath:
    """Takes the steps of a training with squared error, and its own with each of them.

    Momentum SGD from 0; its rate is 2 / max |z|^2 at first and falls as the network's does.  The
    training's samples must be ``x``, and its offset an array that is written to here.
    """

    def __init__(self, x: Array, z: Array, n_outputs: int) -> None:
        self.x, self.z = x, z
        self.weights = np.zeros((z.shape[1], n_outputs), dtype=np.float32)
        self.velocity = np.zeros_like(self.weights)
        self.rate = 2.0 / float(np.square(z).sum(axis=1).max())

    def __call__(self, z: Array) -> Array:
        """Return what the path adds to the outputs."""
        return z @ self.weights

    def train(
        self,
        training: Training,
        order: NDArray[np.int64],
        batch: int,
        clock: Clock,
        stop: int,
    ) -> float:
        """Take the steps from the clock's to ``stop``; return the mean loss."""
        plan, data = training.plan, training.data
        native = training.network.native(plan.loss, plan.n_threads)
        total = 0.0
        for number, step in enumerate(plan.steps(clock, stop)):
            rows = order[number * batch : (number + 1) * batch]
            data.offset[rows] = self(self.z[rows])
            outputs = native.predict(as_samples(self.x[rows], np.float32)) + data.offset[rows]
            outcome = native.train(
                data.samples,
                data.targets,
                rows,
                rows.size,
                plan.optimizer.rule,
                [step],
                offset=data.offset,
                first_step=clock.step + number,
            )
            total += outcome.loss * rows.size
            rate = self.rate * plan.rate_at(clock.at(clock.step + number)) / plan.learning_rate
            error = (outputs - data.targets[rows]) / rows.size
            self.velocity *= MOMENTUM
            self.velocity -= np.float32(rate) * (self.z[rows].T @ error)
            self.weights += self.velocity
        return total / order.size

    def agree(self, training: Training) -> None:
        """Do nothing: there are no other ranks."""
