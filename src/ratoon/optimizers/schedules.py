"""Learning-rate schedules: functions from the progress of training to a factor.

Progress is 0 at the first step and 1 after the last.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ratoon.errors import InvalidParameterError, near

Schedule = Callable[[float], float]


def constant(progress: float) -> float:
    """Return 1: a constant learning rate."""
    del progress
    return 1.0


def cosine(progress: float) -> float:
    """Fall from 1 to 0 along half a cosine (Loshchilov and Hutter, ICLR 2017).

    Examples
    --------
    >>> cosine(0.0), round(cosine(0.5), 6), cosine(1.0)
    (1.0, 0.5, 0.0)
    """
    return 0.5 * (1.0 + math.cos(math.pi * min(max(progress, 0.0), 1.0)))


def linear(progress: float) -> float:
    """Fall from 1 to 0 along a straight line.

    Examples
    --------
    >>> linear(0.0), linear(0.25), linear(1.0)
    (1.0, 0.75, 0.0)
    """
    return 1.0 - min(max(progress, 0.0), 1.0)


def stepped(progress: float, *, drops: tuple[float, ...] = (0.5, 0.75), by: float = 0.1) -> float:
    """Multiply by ``by`` at each of the points ``drops`` of training.

    Examples
    --------
    >>> [round(stepped(p), 4) for p in (0.0, 0.5, 0.9)]
    [1.0, 0.1, 0.01]
    """
    return float(by ** sum(progress >= drop for drop in drops))


def with_warm_up(schedule: Schedule, fraction: float) -> Schedule:
    """Rise linearly during the first ``fraction`` of training, then follow ``schedule``.

    Examples
    --------
    >>> warm = with_warm_up(constant, 0.1)
    >>> warm(0.05), warm(0.5)
    (0.5, 1.0)
    """
    if not 0.0 <= fraction < 1.0:
        raise InvalidParameterError(f"the warm-up must be in [0, 1), got {fraction!r}.")

    def warm(progress: float) -> float:
        if fraction > 0.0 and progress < fraction:
            return progress / fraction
        return schedule((progress - fraction) / (1.0 - fraction))

    return warm


def with_floor(schedule: Schedule, floor: float) -> Schedule:
    """Follow ``schedule``, but not below ``floor``.

    Examples
    --------
    >>> with_floor(cosine, 0.2)(1.0)
    0.2
    """
    return lambda progress: max(schedule(progress), floor)


SCHEDULES: dict[str, Schedule] = {
    "constant": constant,
    "cosine": cosine,
    "linear": linear,
    "step": stepped,
}


def make_schedule(name: str | Schedule, *, warm_up: float = 0.0, floor: float = 0.0) -> Schedule:
    """Return a schedule by name or the given function, with a lower bound and a warm-up.

    Examples
    --------
    >>> schedule = make_schedule("cosine", floor=0.1)
    >>> schedule(0.0), schedule(1.0)
    (1.0, 0.1)
    """
    if callable(name):
        schedule = name
    elif name in SCHEDULES:
        schedule = SCHEDULES[name]
    else:
        raise InvalidParameterError(
            f"`learning_rate` must be one of {tuple(SCHEDULES)} or a function of the progress of"
            f" training, got {name!r}.{near(name, SCHEDULES)}"
        )
    if floor:
        schedule = with_floor(schedule, floor)
    return with_warm_up(schedule, warm_up) if warm_up else schedule
