"""State machines, leaks, children and Ctrl-C, in the long run."""

import time

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.processes import run_script
from tests.reliability.machine import CheckpointMachine, EstimatorMachine

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("machine", [EstimatorMachine, CheckpointMachine])
def test_walks_of_fifty_steps_end_at_the_same_bits(machine, minutes, say):
    often = settings(
        max_examples=5, stateful_step_count=50, deadline=None, derandomize=False, database=None
    )
    stop, walks = time.monotonic() + 60 * minutes, 0
    while walks == 0 or (walks < 2000 and time.monotonic() < stop):
        run_state_machine_as_test(machine, settings=often)
        walks += 5
    say(f"{walks} walks")


def test_a_thousand_fits_grow_by_less_than_a_megabyte(minutes, say):
    found = run_script("reliability/leaks.py", "--minutes", minutes, timeout=None)
    say(found)
    assert found["megabytes_grown"] < 1.0
    assert found["files_grown"] == found["threads_grown"] == 0


def test_a_hundred_children_of_every_kind_do_not_hang(minutes, say):
    found = run_script("reliability/cycles.py", "--cycles", 100, "--minutes", minutes, timeout=None)
    say(found)
    assert found["hung"] == found["different"] == 0


def test_ctrl_c_raises_within_a_quarter_of_a_second(minutes, say):
    found = run_script("reliability/latency.py", "--tries", 200, "--minutes", minutes, timeout=None)
    say(found)
    assert sum(of["failed"] for of in found.values()) == 0
    # Of processor time: what others do on the machine must not decide.
    assert max(of["cpu_ms"] for of in found.values()) < 250
