"""TrainingPlan: the settings of a training."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field

from ratoon.errors import InvalidParameterError
from ratoon.evolution import Clock, Static, Strategy
from ratoon.kernels import LOSSES, Step
from ratoon.optimizers import SGD, Optimizer, Schedule, constant
from ratoon.samples.augment import Augment

_CHECKED = 64
"""A schedule is checked at so many points before training, and then at every step."""


@dataclass(frozen=True)
class TrainingPlan:
    """Loss, optimizer, minibatches, evolution, length and seed of a training.

    Parameters
    ----------
    loss : str
        One of ``softmax_cross_entropy``, ``sigmoid_cross_entropy``, ``squared_error``.
    learning_rate : float
        Learning rate, which the schedule multiplies.
    schedule : callable
        Returns a factor of the learning rate for the progress of training, from 0 to 1.
    batch_size : int
        Samples per minibatch; the last minibatch of an epoch can be smaller.
    balance_batches : bool
        Make the minibatches of an epoch about equally large, instead of a small one at the end: a
        minibatch of one sample gives a noisy step.
    n_epochs : int
        Length of the whole training, on which schedules depend.
    seed : int
        Root of all random numbers.
    n_threads : int
        Does not change results.
    augment : Augment, optional
        How training changes images while it reads them.
    """

    loss: str = "softmax_cross_entropy"
    optimizer: Optimizer = field(default_factory=SGD)
    learning_rate: float = 0.01
    schedule: Schedule = constant
    batch_size: int = 32
    balance_batches: bool = False
    n_epochs: int = 10
    evolution: Strategy = field(default_factory=Static)
    shuffle: bool = True
    seed: int = 0
    n_threads: int = 1
    augment: Augment | None = None

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise InvalidParameterError(
                f"`loss` must be one of {tuple(LOSSES)}, got {self.loss!r}."
            )
        if not (self.learning_rate > 0 and math.isfinite(self.learning_rate)):
            raise InvalidParameterError(
                f"the learning rate must be a positive number, got {self.learning_rate!r}."
            )
        for point in range(_CHECKED + 1):
            self._factor(point / _CHECKED)
        for name in ("batch_size", "n_epochs", "n_threads"):
            if getattr(self, name) < 1:
                raise InvalidParameterError(
                    f"`{name}` must be at least 1, got {getattr(self, name)!r}."
                )

    def batch_for(self, n_samples: int) -> int:
        """Return the minibatch size for that many samples."""
        batch = min(self.batch_size, n_samples)
        if not self.balance_batches:
            return batch
        return math.ceil(n_samples / math.ceil(n_samples / batch))

    def clock(self, epoch: int, n_samples: int) -> Clock:
        """Return the time at the beginning of an epoch."""
        steps_per_epoch = math.ceil(n_samples / self.batch_for(n_samples))
        return Clock(epoch * steps_per_epoch, steps_per_epoch, self.n_epochs * steps_per_epoch)

    def rate_at(self, clock: Clock) -> float:
        """Return the learning rate at that time."""
        return self.learning_rate * self._factor(clock.progress)

    def _factor(self, progress: float) -> float:
        """Return the factor of the schedule; raise unless it is finite and not negative."""
        factor = self.schedule(progress)
        try:
            is_valid = bool(0.0 <= factor <= sys.float_info.max)
        except (TypeError, ValueError):
            is_valid = False
        if not is_valid:
            raise InvalidParameterError(
                f"the learning-rate schedule returned {factor!r} for the progress {progress:.3g}.\n"
                "  It must return a finite number that is not negative, for every progress from 0"
                " to 1."
            )
        return factor

    def steps(self, clock: Clock, stop: int) -> list[Step]:
        """Return the hyperparameters of the steps from the clock's to ``stop``, exclusive."""
        return [
            self.optimizer.step(self.rate_at(clock.at(number)), number)
            for number in range(clock.step, stop)
        ]
