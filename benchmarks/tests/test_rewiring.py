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
    size_left,
    start,
    strategy,
    tasks,
)
from quality.rewiring_scores import SHOWN, SMALLER, groups
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
def test_annealed_strategies_rewire_at_the_same_moments(name):
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


def test_nest_has_the_size_of_the_others_at_the_end():
    nest, seed = (strategy(name, 5, 200) for name in ("nest", "nest_seed"))
    assert [nest.level(progress) for progress in (0.0, 0.35, 0.7, 1.0)] == [1.0, 3.0, 1.0, 1.0]
    assert [seed.level(progress) for progress in (0.0, 0.35, 0.7, 1.0)] == [1.0, 3.0, 2.0, 2.0]
    assert nest.schedule.every == strategy("set", 5, 200).schedule.every


@pytest.mark.parametrize(("steps_per_epoch", "n_epochs"), [(2, 500), (157, 32), (4, 100)])
def test_neurons_are_pruned_seven_or_eight_times(steps_per_epoch, n_epochs):
    clocks = [
        Clock(steps_per_epoch * epoch, steps_per_epoch, steps_per_epoch * n_epochs)
        for epoch in range(1, n_epochs)
    ]
    for name in ("neurons", "neurons_set", "neurons_published"):
        pruning = strategy(name, steps_per_epoch, n_epochs)
        assert sum(pruning.prunes_at(clock) for clock in clocks) in (7, 8)


def test_all_start_the_same_but_for_a_seed_and_small_networks():
    usual, seed, small = (start(name, 100, 3, 0) for name in ("set", "nest_seed", "small"))
    assert [topology.n_connections for topology in usual] == [1500, 900]
    assert set(seed[0].positions) < set(usual[0].positions)
    assert (seed[0].degrees()[1] > 0).sum() <= 150
    assert seed[1].n_connections == 450
    assert [len(topology.positions) for topology in start("half", 100, 3, 0)] == [
        topology.n_connections for topology in seed
    ]
    assert [topology.n_connections for topology in small] == [400, 150]


def test_sizes_are_in_percent_of_the_usual_start(monkeypatch):
    monkeypatch.setattr(rewiring, "N_STEPS", 200)
    task = Task("linear", 500)
    assert size_left(task, "nest", 0) == 100
    assert size_left(task, "nest_seed", 0) == pytest.approx(100, abs=10)
    assert 10 < size_left(task, "neurons", 0) < 50


def test_every_strategy_but_static_is_shown():
    assert {"static", *SHOWN, *SMALLER} == set(STRATEGIES)


def test_wide_sets_are_read_as_in_the_study():
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
        assert run_one(Task("linear", 500), name, 0, None) > 60


def test_rewiring_moves_connections_to_informative_features(monkeypatch):
    monkeypatch.setattr(rewiring, "N_STEPS", 400)
    task = Task("linear", 500)
    assert signal_found(task, "static", 0) == pytest.approx(4, abs=1.5)
    assert signal_found(task, "guided", 0) > 20
    assert 0 <= signal_found(Task("pairs", 500), "static", 0) < 8


def test_only_missing_rows_are_computed(tmp_path, monkeypatch):
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
    monkeypatch.setattr(rewiring_report, "size_left", lambda task, name, seed: 20.0)
    sizes = rewiring_report.found_beside(rows, "size")
    assert rewiring_report.run_missing_sizes(sizes, [0], minutes=1)
    text = rewiring_report.write_map(rows, tmp_path / "rewiring.md")
    assert f"| tasks | {' | '.join(SHOWN.values())} |" in text
    # Gains are differences in length of names: three letters against the six of "static".
    line = "| -3.0 ± 0.0 | -2.0 ± 0.0 | -3.0 ± 0.0 |"
    assert f"| interactions, to 500 samples (1) {line} -2.0 ± 0.0 | -3.0 ± 0.0 |" in text
    assert "| sure losses | 2 | 2 | 2 | 2 | 2 | 0 | 0 | 0 | 0 | 2 | 0 | 0 |" in text
    assert "| interactions, to 500 samples (1) | +2.0 ± 0.0 | +6.0 ± 0.0 | +12.0 ± 0.0 |" in text
    assert text.count(f"| pairs | 500 | 2 | 56.0 {line}") == 1
    assert f"| linear | 50 | 2 | {' | '.join(['5.0'] * (1 + len(SHOWN)))} |" in text
    assert f"| digits | 500 | 1 | {' | '.join(['20.0'] * (2 + len(SMALLER)))} |" in text
    for name in ("rewiring.png", "rewiring-all.png"):
        assert (tmp_path / name).stat().st_size > 1000
