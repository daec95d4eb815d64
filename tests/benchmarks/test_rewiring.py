"""The map of where rewiring helps: tasks, strategies, resumable rows, table and picture."""

from __future__ import annotations

import numpy as np
import pytest
from quality import rewiring, rewiring_report
from quality.rewiring import SIGNALS, STRATEGIES, Task, generate, run_one, strategy, tasks


def test_signals_go_from_sums_to_products():
    for kind, is_linear in [("linear", True), ("pairs", False), ("threes", False)]:
        parts = generate(kind, 4000, seed=0)
        told = np.corrcoef(parts.x[:, :4].sum(axis=1), parts.y)[0, 1]
        assert (told > 0.5) == is_linear, kind
    parts = generate("pairs", 4000, seed=0)
    assert np.corrcoef(parts.x[:, 4] * parts.x[:, 5], parts.y)[0, 1] > 0.3


def test_the_two_that_settle_rewire_at_the_same_moments():
    settles, by_gradient = strategy("set", 5, 200), strategy("rigl", 5, 200)
    assert settles.schedule.every * 5 == by_gradient.schedule.every
    assert settles.schedule.until == by_gradient.schedule.until


def test_without_data_there_are_generated_tasks_and_digits():
    assert {task.kind for task in tasks(None)} == {*SIGNALS, "digits"}


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_learns_a_sum(name, monkeypatch):
    monkeypatch.setattr(rewiring, "N_STEPS", 200)
    assert run_one(Task("linear", 500), name, 0, None) > 65


def test_rows_are_kept_and_only_missing_ones_run(tmp_path, monkeypatch):
    calls = []

    def pretended(task, name, seed, folder):
        calls.append((task, name, seed))
        return 50.0 + len(name)

    monkeypatch.setattr(rewiring_report, "run_one", pretended)
    monkeypatch.setattr(rewiring_report, "tasks", lambda folder: [Task("pairs", 50)])
    rows = tmp_path / "rewiring.csv"
    assert not rewiring_report.run_missing(rows, None, [0], minutes=0)
    assert rewiring_report.run_missing(rows, None, [0, 1], minutes=1)
    assert rewiring_report.run_missing(rows, None, [0, 1], minutes=1)
    assert len(calls) == 2 * len(STRATEGIES)
    text = rewiring_report.write_map(rows, tmp_path / "rewiring.md")
    assert "| pairs | 50 | 2 | 56.0 | -3.0 ± 0.0 | -2.0 ± 0.0 | +3.0 ± 0.0 |" in text
    assert (tmp_path / "rewiring.png").stat().st_size > 1000
