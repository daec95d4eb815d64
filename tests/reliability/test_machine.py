"""Short runs of the state machines; `tests/soak` has long ones."""

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


def test_actions_between_two_epochs_do_not_change_an_estimator():
    run_state_machine_as_test(EstimatorMachine, settings=SHORT)


def test_a_training_interrupted_anywhere_continues_to_the_same_bits():
    run_state_machine_as_test(CheckpointMachine, settings=SHORT)
