"""When to rewire, and how much: the position in training, and a schedule."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ratoon.errors import InvalidParameterError, check_field_types

UNITS = ("epoch", "step", "permille")


@dataclass(frozen=True)
class Clock:
    """A position in training: before step ``step``, counted from 0 over all epochs."""

    step: int
    steps_per_epoch: int
    total_steps: int

    @property
    def epoch(self) -> int:
        """The epoch of the step, counted from 0."""
        return self.step // self.steps_per_epoch

    @property
    def progress(self) -> float:
        """The completed fraction of training: 0 at the start, 1 at the end."""
        return min(1.0, self.step / max(self.total_steps, 1))

    def at(self, step: int) -> Clock:
        """Return the same clock at another step."""
        return Clock(step, self.steps_per_epoch, self.total_steps)


def _constant(progress: float) -> float:
    del progress
    return 1.0


def _linear(progress: float) -> float:
    return 1.0 - progress


def _cosine(progress: float) -> float:
    return 0.5 * (1.0 + math.cos(math.pi * progress))


ANNEALINGS = {"constant": _constant, "linear": _linear, "cosine": _cosine}


@dataclass(frozen=True)
class RewiringSchedule:
    """Rewire at a fixed interval, until a fraction of training is completed.

    A rewiring that is due after an epoch happens just before the next one begins.  So there is
    none after the last epoch, and the weights returned are always those of the last step.

    Parameters
    ----------
    every : int
        Epochs, steps or thousandths of training between two rewirings.
    unit : {"epoch", "step", "permille"}
        What ``every`` counts.  Thousandths are rounded up to whole steps, so that there are never
        more rewirings than requested.
    until : float
        Fraction of training after which the topology no longer changes.
    anneal : {"constant", "linear", "cosine"}
        How the replaced fraction falls to 0 by then; ``"constant"`` keeps it.

    Examples
    --------
    >>> RewiringSchedule(every=2).due_steps(Clock(0, 10, 60), 60)
    [20, 40]
    >>> RewiringSchedule(every=5, unit="permille", until=0.05).due_steps(Clock(0, 50, 1000), 100)
    [5, 10, 15, 20, 25, 30, 35, 40, 45, 50]
    """

    every: int = 1
    unit: str = "epoch"
    until: float = 1.0
    anneal: str = "constant"

    def __post_init__(self) -> None:
        check_field_types(self)
        if self.every < 1:
            raise InvalidParameterError(f"`every` must be at least 1, got {self.every!r}.")
        if self.unit not in UNITS:
            raise InvalidParameterError(f"`unit` must be one of {UNITS}, got {self.unit!r}.")
        if not 0.0 <= self.until <= 1.0:
            raise InvalidParameterError(f"`until` must be in [0, 1], got {self.until!r}.")
        if self.anneal not in ANNEALINGS:
            raise InvalidParameterError(
                f"`anneal` must be one of {tuple(ANNEALINGS)}, got {self.anneal!r}."
            )

    def due_steps(self, clock: Clock, stop: int) -> list[int]:
        """Return the steps, from the clock's step up to ``stop``, before which to rewire."""
        interval = self.interval(clock)
        first = max(interval, -(-clock.step // interval) * interval)
        limit = self.until * clock.total_steps
        return [step for step in range(first, stop, interval) if step <= limit]

    def interval(self, clock: Clock) -> int:
        """Return the number of steps between two rewirings."""
        if self.unit == "epoch":
            return self.every * clock.steps_per_epoch
        if self.unit == "permille":
            return max(1, -(-self.every * clock.total_steps // 1000))
        return self.every

    def factor(self, clock: Clock) -> float:
        """Return the factor that annealing applies to the replaced fraction at this time."""
        if self.until == 0.0:
            return 0.0
        return ANNEALINGS[self.anneal](min(1.0, clock.progress / self.until))
