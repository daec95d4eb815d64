"""Train on Cox's partial likelihood: risk sets within every minibatch.

The loss of a sample depends on the scores of all samples at risk when it has the event, so it is
not a sum over samples as the native losses are.  Every step computes the scores of the minibatch as
training does, with dropout; then the gradient of the loss by these scores, in O(b log b) for b
samples; and takes a native step with that gradient.  A step costs one forward pass more than one
with a native loss, and remains in proportion to the connections.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.errors import DivergenceError
from ratoon.evolution import Clock
from ratoon.rng import derive_seed
from ratoon.survival import CoxLoss

if TYPE_CHECKING:
    from ratoon.training.loop import Training

GIVEN_GRADIENT = "given_gradient"
"""The native loss whose targets are gradients."""


def cox_loss(scores: Array, targets: Array, weights: Array | None, ties: str) -> float:
    """Return the loss per event of scores (samples, 1) against targets (samples, 2).

    Examples
    --------
    >>> cox_loss(np.zeros((2, 1)), np.array([[1.0, 0.0], [0.0, 1.0]]), None, "efron").__round__(3)
    0.693
    """
    loss = CoxLoss(targets[:, 0] > 0, targets[:, 1], weights, ties=ties)
    return loss(scores[:, 0])[0] / loss.n_events if loss.n_events else 0.0


@dataclass(frozen=True, eq=False)
class CoxRunner:
    """Takes the steps of a training with Cox's partial likelihood.

    Parameters
    ----------
    targets : ndarray of shape (n_samples, 2)
        1 for an event or 0, and the rank of the time, of every sample.
    weights : ndarray of shape (n_samples,), optional
        Sample weights.
    ties : {"efron", "breslow"}
        How events at the same time count.
    """

    targets: Array
    weights: Array | None
    ties: str

    def train(
        self,
        training: Training,
        order: NDArray[np.int64],
        batch: int,
        clock: Clock,
        stop: int,
    ) -> float:
        """Take the steps from the clock's to ``stop``; return the loss per sample."""
        plan = training.plan
        native = training.network.native(GIVEN_GRADIENT, plan.n_threads)
        steps = plan.steps(clock, stop)
        samples, total, n_events = training.samples, 0.0, 0.0
        for number, first in enumerate(range(0, order.size, batch)):
            rows = np.ascontiguousarray(order[first : first + batch])
            step = clock.step + number
            value, events = self.set_gradient(training, rows, step)
            total, n_events = total + value, n_events + events
            outcome = native.train(
                samples,
                training.data.targets,
                rows,
                rows.size,
                plan.optimizer.rule,
                [steps[number]],
                scaling=training.network.scaling,
                dropout_seed=derive_seed(plan.seed, "dropout"),
                first_step=step,
            )
            if outcome.diverged or not np.isfinite(value):
                raise DivergenceError(
                    f"training diverged: the loss is not finite at step {number + 1} of epoch"
                    f" {clock.epoch + 1}.\n"
                    f"  The learning rate is {plan.rate_at(clock):.3g}; try a tenth of it, scale"
                    " the features, or clip them."
                )
            for callback in training.callbacks:
                callback.on_progress(training, clock.step % clock.steps_per_epoch + number + 1)
        return total / n_events if n_events else 0.0

    def set_gradient(
        self, training: Training, rows: NDArray[np.int64], step: int
    ) -> tuple[float, float]:
        """Put the gradient of a minibatch into the targets; return its loss and its events."""
        scores = training.network.native(GIVEN_GRADIENT, training.plan.n_threads).training_outputs(
            training.samples,
            rows,
            scaling=training.network.scaling,
            dropout_seed=derive_seed(training.plan.seed, "dropout"),
            step=step,
        )
        weights = None if self.weights is None else self.weights[rows]
        loss = CoxLoss(self.targets[rows, 0] > 0, self.targets[rows, 1], weights, ties=self.ties)
        value, gradient = loss(scores[:, 0])
        # The native step divides by the number of samples; a loss is a mean over events.
        gradient *= rows.size / max(loss.n_events, 1e-300)
        training.data.targets[rows, 0] = gradient
        return value, loss.n_events

    def agree(self, training: Training) -> None:
        """Do nothing: there are no other ranks."""

    def end_epoch(self, training: Training, last: int) -> None:
        """Do nothing: there are no other ranks."""

    def fail(self, error: BaseException) -> None:
        """Do nothing: there are no other ranks."""

    def finish(self) -> None:
        """Do nothing."""
