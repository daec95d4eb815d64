"""All threads or one: whichever is quicker at the moment, with few trials of the other."""

import numpy as np
import pytest

from ratoon.kernels import Pace
from tests.kernels.jobs import Job


def run(pace, seconds_of, n_steps):
    """Take steps that last as long as ``seconds_of(threads)``; return the threads of each."""
    chosen = []
    for _ in range(n_steps):
        chosen.append(pace.threads(4))
        pace.took(seconds_of(chosen[-1]))
    return chosen


def test_all_threads_while_they_are_faster():
    chosen = run(Pace(), {4: 0.001, 1: 0.0018}.get, 5000)
    assert chosen[:16] == [4] * 16, "nothing is tried before something is known"
    assert 0 < chosen.count(1) / 5000 < 0.01


def test_one_thread_where_more_are_slower():
    chosen = run(Pace(), {4: 0.002, 1: 0.0013}.get, 5000)
    assert chosen[-1] == 1
    assert chosen.count(4) / 5000 < 0.03


@pytest.mark.parametrize("first", [0.0007, 0.002])
def test_the_choice_follows_a_change_of_speed(first):
    pace, second = Pace(), 0.0027 - first
    assert run(pace, {4: first, 1: 0.0013}.get, 1000)[-1] == (4 if first < 0.0013 else 1)
    chosen = run(pace, {4: second, 1: 0.0013}.get, 1000)
    assert chosen[-1] == (4 if second < 0.0013 else 1)
    # That threads hinder shows at once, that they would help only when they are tried again.
    assert chosen.count(chosen[-1]) > (900 if chosen[-1] == 1 else 600)


def test_a_single_slow_step_decides_nothing():
    rng = np.random.default_rng(0)
    chosen = run(Pace(), lambda n: {4: 1e-3, 1: 2e-3}[n] * (10 if rng.random() < 0.2 else 1), 5000)
    assert chosen.count(1) / 5000 < 0.05


def test_trials_cost_nothing_where_both_choices_are_equally_fast():
    chosen = run(Pace(), {4: 0.001, 1: 0.00098}.get, 5000)
    assert chosen.count(4) > 4800, "a fiftieth is no reason to change"


def test_long_steps_always_use_all_threads():
    assert run(Pace(), {4: 0.2, 1: 0.1}.get, 500) == [4] * 500


def test_the_choice_changes_no_bit():
    alone, together = Job(n_threads=1), Job(n_threads=2)
    for job in (alone, together):
        job.train(epochs=40)  # 120 steps, of which some are trials
    assert alone.result() == together.result()
