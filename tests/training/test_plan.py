"""Plans: what is decided before the first step, and what is refused."""

import pytest

from ratoon.errors import InvalidParameterError
from ratoon.training import TrainingPlan


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"loss": "hinge"}, "`loss`"),
        ({"learning_rate": 0.0}, "learning rate"),
        ({"learning_rate": float("nan")}, "learning rate"),
        ({"learning_rate": float("inf")}, "learning rate"),
        ({"batch_size": 0}, "`batch_size`"),
        ({"n_epochs": 0}, "`n_epochs`"),
        ({"n_threads": 0}, "`n_threads`"),
    ],
)
def test_impossible_plans_are_refused_by_name(wrong, name):
    with pytest.raises(InvalidParameterError, match=name):
        TrainingPlan(**wrong)


def test_a_minibatch_is_never_larger_than_the_data():
    assert TrainingPlan(batch_size=64).batch_for(10) == 10


def test_the_clock_counts_the_short_batch():
    clock = TrainingPlan(batch_size=5, n_epochs=4).clock(2, 11)
    assert (clock.step, clock.steps_per_epoch, clock.total_steps) == (6, 3, 12)
    assert clock.progress == 0.5
