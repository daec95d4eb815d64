"""When to rewire."""

import pytest

from ratoon.errors import InvalidParameterError
from ratoon.evolution import Clock, RewiringSchedule, StatefulStrategy, watched_steps

EPOCH = 10


def due_over(schedule, n_epochs):
    """Return all steps due, asked for epoch by epoch as training does."""
    total = EPOCH * n_epochs
    return [
        step
        for epoch in range(n_epochs)
        for step in schedule.due_steps(Clock(epoch * EPOCH, EPOCH, total), (epoch + 1) * EPOCH)
    ]


def test_every_epoch_means_after_every_epoch_but_the_last():
    assert due_over(RewiringSchedule(), 4) == [10, 20, 30]


def test_steps_are_counted_over_all_epochs():
    assert due_over(RewiringSchedule(every=7, unit="step"), 3) == [7, 14, 21, 28]


@pytest.mark.parametrize(
    ("total", "due"),
    [
        (1000, [5, 10, 15, 20, 25, 30, 35, 40, 45, 50]),
        (920, [5, 10, 15, 20, 25, 30, 35, 40, 45]),
        (280, [2, 4, 6, 8, 10, 12, 14]),
        (100, [1, 2, 3, 4, 5]),
    ],
)
def test_thousandths_of_training_are_rounded_up_to_whole_steps(total, due):
    schedule = RewiringSchedule(every=5, unit="permille", until=0.05)
    assert schedule.due_steps(Clock(0, EPOCH, total), total) == due


def test_nothing_is_due_past_the_given_fraction_of_training():
    assert due_over(RewiringSchedule(until=0.5), 4) == [10, 20]
    assert due_over(RewiringSchedule(until=0.0), 4) == []


def test_steps_before_the_clock_are_never_due():
    schedule = RewiringSchedule(every=4, unit="step")
    assert schedule.due_steps(Clock(9, EPOCH, 40), 20) == [12, 16]
    assert schedule.due_steps(Clock(12, EPOCH, 40), 20) == [12, 16]


@pytest.mark.parametrize(
    ("anneal", "expected"),
    [("constant", [1, 1, 1]), ("linear", [1, 0.5, 0]), ("cosine", [1, 0.5, 0])],
)
def test_the_fraction_goes_to_zero_at_the_end_of_rewiring(anneal, expected):
    schedule = RewiringSchedule(until=0.8, anneal=anneal)
    factors = [schedule.factor(Clock(step, EPOCH, 100)) for step in (0, 40, 80)]
    assert factors == pytest.approx(expected)
    assert schedule.factor(Clock(95, EPOCH, 100)) == pytest.approx(expected[-1])


def test_cosine_is_above_linear_in_the_first_half_and_below_in_the_second():
    cosine, linear = (RewiringSchedule(anneal=name) for name in ("cosine", "linear"))
    for step, sign in ((25, 1), (75, -1)):
        clock = Clock(step, EPOCH, 100)
        assert sign * (cosine.factor(clock) - linear.factor(clock)) > 0.1


@pytest.mark.parametrize(
    "wrong", [{"every": 0}, {"unit": "week"}, {"until": 1.5}, {"anneal": "slowly"}]
)
def test_an_invalid_schedule_is_refused(wrong):
    [name] = wrong
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        RewiringSchedule(**wrong)


class Watcher(StatefulStrategy):
    n_watched = 3
    schedule = RewiringSchedule(until=0.75)

    def start_state(self, layers, seed):
        return {}

    def rewire_from(self, state, layers, clock, seed):
        raise NotImplementedError


def test_the_steps_before_each_rewiring_are_watched_and_no_others():
    watched = [
        step
        for epoch in range(4)
        for step in watched_steps(Watcher(), Clock(epoch * EPOCH, EPOCH, 40), (epoch + 1) * EPOCH)
    ]
    assert watched == [7, 8, 9, 17, 18, 19, 27, 28, 29]
