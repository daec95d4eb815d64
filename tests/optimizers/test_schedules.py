"""Schedules: factors of the learning rate by the progress of training."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratoon.errors import InvalidParameterError
from ratoon.evolution import Clock
from ratoon.optimizers import SCHEDULES, constant, cosine, make_schedule, stepped, with_warm_up
from ratoon.training import TrainingPlan


def test_cosine_changes_slowly_at_both_ends():
    # (1 + cos(pi p)) / 2
    assert [cosine(p) for p in (0.0, 1 / 3, 2 / 3, 1.0)] == pytest.approx([1.0, 0.75, 0.25, 0.0])


def test_the_stepped_schedule_drops_at_its_points():
    assert [stepped(p) for p in (0.49, 0.5, 0.75)] == pytest.approx([1.0, 0.1, 0.01])
    assert stepped(0.9, drops=(0.3, 0.6, 0.9), by=0.5) == 0.125


def test_a_warm_up_is_followed_by_the_whole_schedule():
    warm = with_warm_up(cosine, 0.2)
    assert [warm(p) for p in (0.0, 0.1, 0.2, 0.6, 1.0)] == pytest.approx([0.0, 0.5, 1.0, 0.5, 0.0])


@given(name=st.sampled_from(sorted(SCHEDULES)), progress=st.floats(0, 1), warm=st.floats(0, 0.9))
def test_every_factor_is_between_0_and_1(name, progress, warm):
    assert 0.0 <= make_schedule(name, warm_up=warm)(progress) <= 1.0


def test_a_function_can_be_a_schedule():
    assert make_schedule(lambda progress: 1 - progress)(0.25) == 0.75


def test_a_plan_follows_its_schedule_step_by_step():
    plan = TrainingPlan(learning_rate=0.4, schedule=cosine, batch_size=5, n_epochs=2)
    rates = [step.lr for step in plan.steps(Clock(0, 2, 4), 4)]
    assert rates == pytest.approx([0.4 * cosine(p) for p in (0.0, 0.25, 0.5, 0.75)])


def test_unknown_names_and_invalid_warm_ups_are_refused():
    with pytest.raises(InvalidParameterError, match="'constant', 'cosine', 'linear', 'step'"):
        make_schedule("exponential")
    with pytest.raises(InvalidParameterError, match="in \\[0, 1\\)"):
        with_warm_up(constant, 1.0)


@pytest.mark.parametrize(
    "value", [-1.0, -1e-9, float("nan"), float("inf"), None, "0.1", 1j, [0.1], (), np.ones(2)]
)
def test_a_schedule_that_returns_no_rate_is_refused_before_training(value):
    for schedule in (lambda p: value, lambda p: value if p >= 0.9 else 1.0):
        with pytest.raises(InvalidParameterError, match="schedule returned"):
            TrainingPlan(schedule=schedule)


def test_a_schedule_that_returns_a_negative_number_later_is_refused_at_that_step():
    plan = TrainingPlan(schedule=lambda p: -1.0 if p == 0.123 else 1.0)
    assert plan.rate_at(Clock(0, 10, 100)) == 0.01
    with pytest.raises(InvalidParameterError, match=r"-1\.0 for the progress 0\.123"):
        plan.rate_at(Clock(123, 10, 1000))
