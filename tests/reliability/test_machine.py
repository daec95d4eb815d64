"""Short walks of the machines; `tests/soak` lets them walk for long."""

from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.reliability.machine import CheckpointMachine, EstimatorMachine

SHORT = settings(
    max_examples=8,
    stateful_step_count=10,
    deadline=None,
    derandomize=True,
    report_multiple_bugs=False,
    phases=[Phase.explicit, Phase.generate],  # shrinking is left to the long walks
)


def test_an_estimator_is_the_same_whatever_happens_between_two_epochs():
    run_state_machine_as_test(EstimatorMachine, settings=SHORT)


def test_a_training_that_ends_anywhere_goes_on_to_the_same_bits():
    run_state_machine_as_test(CheckpointMachine, settings=SHORT)
