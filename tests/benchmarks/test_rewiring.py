"""The map of where rewiring helps: tasks, strategies, resumable rows, table and picture."""

from __future__ import annotations

import numpy as np
import pytest
from quality import rewiring, rewiring_report
from quality.rewiring import (
    ROWS_OF_WIDE,
    SIGNALS,
    STRATEGIES,
    Task,
    generate,
    prepare,
    run_one,
    signal_found,
    strategy,
    tasks,
)
from quality.rewiring_scores import SHOWN, groups
from quality.sets import default_folder, load, split
from threadpoolctl import threadpool_limits

from ratoon.evolution import Clock


def test_signals_go_from_sums_to_products():
    for kind, is_linear in [("linear", True), ("pairs", False), ("threes", False)]:
        parts = generate(kind, 4000, seed=0)
        told = np.corrcoef(parts.x[:, :4].sum(axis=1), parts.y)[0, 1]
        assert (told > 0.5) == is_linear, kind
    parts = generate("pairs", 4000, seed=0)
    assert np.corrcoef(parts.x[:, 4] * parts.x[:, 5], parts.y)[0, 1] > 0.3


@pytest.mark.parametrize("name", ["rigl", "gse", "snfs", "dsr", "set_drawn"])
def test_those_that_settle_rewire_at_the_same_moments(name):
    clock = Clock(0, steps_per_epoch=5, total_steps=1000)
    due = [strategy(n, 5, 200).schedule.due_steps(clock, 1000) for n in ("set", name)]
    assert due[0] == due[1]
    assert len(due[0]) == 28


def test_others_keep_the_moments_that_are_part_of_them():
    clock = Clock(0, steps_per_epoch=5, total_steps=1000)
    found = {
        name: strategy(name, 5, 200).schedule.due_steps(clock, 1000)
        for name in ("deep_r", "published", "guided", "set_early", "static")
    }
    assert found["deep_r"] == list(range(10, 1000, 10))
    assert found["published"] == list(range(5, 1000, 5))
    assert found["guided"] == found["set_early"] == list(range(5, 51, 5))
    assert found["static"] == []


def test_every_strategy_but_static_is_shown():
    assert {"static", *SHOWN} == set(STRATEGIES)


def test_wide_sets_come_as_in_the_study():
    folder = default_folder()
    if not folder.is_dir() or "colon" not in {path.stem for path in folder.iterdir()}:
        pytest.skip("the development sets are not here")
    parts = prepare(Task("colon", ROWS_OF_WIDE["colon"]), 3, folder)
    its = split(*load("colon", folder), 3)
    assert parts.x.shape == (ROWS_OF_WIDE["colon"], 2000)
    np.testing.assert_array_equal(parts.x_test, its.x_test)
    np.testing.assert_array_equal(parts.y, its.y)


def test_tasks_are_grouped_by_what_they_need():
    cell = {"static": {0: 50.0}}
    kinds = [("linear", 50), ("pairs", 50), ("1/4 pairs", 5000), ("colon", 41), ("PCMAC", 150)]
    found = groups(dict.fromkeys(kinds, cell))
    assert list(found) == [
        "sums",
        "interactions, to 500 samples",
        "interactions, from 1,500 samples",
        "wide sets",
        "text",
    ]


def test_without_data_there_are_generated_tasks_and_digits():
    assert {task.kind for task in tasks(None)} == {*SIGNALS, "digits"}


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_learns_a_sum(name, monkeypatch):
    monkeypatch.setattr(rewiring, "N_STEPS", 200)
    with threadpool_limits(limits=1):  # as in the study; SNFS asks for many small decompositions
        assert run_one(Task("linear", 500), name, 0, None) > 65


def test_rewiring_moves_connections_to_features_that_tell(monkeypatch):
    monkeypatch.setattr(rewiring, "N_STEPS", 400)
    task = Task("linear", 500)
    assert signal_found(task, "static", 0) == pytest.approx(4, abs=1.5)
    assert signal_found(task, "guided", 0) > 20
    assert 0 <= signal_found(Task("pairs", 500), "static", 0) < 8


def test_rows_are_kept_and_only_missing_ones_run(tmp_path, monkeypatch):
    calls = []

    def pretended(task, name, seed, folder):
        calls.append((task, name, seed))
        return 50.0 + len(name)

    monkeypatch.setattr(rewiring_report, "run_one", pretended)
    monkeypatch.setattr(
        rewiring_report, "tasks", lambda folder: [Task("pairs", 500), Task("digits", 50)]
    )
    rows = tmp_path / "rewiring.csv"
    assert not rewiring_report.run_missing(rows, None, [0], minutes=0)
    assert rewiring_report.run_missing(rows, None, [0, 1], minutes=1)
    assert rewiring_report.run_missing(rows, None, [0, 1], minutes=1)
    assert len(calls) == 4 * len(STRATEGIES)
    monkeypatch.setattr(rewiring_report, "signal_found", lambda task, name, seed: 4.0 + seed)
    found = rewiring_report.found_beside(rows)
    assert rewiring_report.run_missing_found(found, [0, 2], minutes=1)
    text = rewiring_report.write_map(rows, tmp_path / "rewiring.md")
    labels = [label for name, label in SHOWN.items() if name != "snfs"]
    assert f"| tasks | {' | '.join(labels)} |" in text
    # Gains are differences in length of names: three letters against the six of "static".
    line = "| -3.0 ± 0.0 | -2.0 ± 0.0 | -3.0 ± 0.0 |"
    assert f"| interactions, to 500 samples (1) {line} -3.0 ± 0.0 | +0.0 ± 0.0 |" in text
    assert "| sure losses, of 2 | 2 | 2 | 2 | 2 | 0 | 0 | 0 | 0 | 0 |" in text
    assert text.count(f"| pairs | 500 | 2 | 56.0 {line}") == 2
    assert f"| linear | 50 | 2 | {' | '.join(['5.0'] * len(STRATEGIES))} |" in text
    for name in ("rewiring.png", "rewiring-all.png"):
        assert (tmp_path / name).stat().st_size > 1000
