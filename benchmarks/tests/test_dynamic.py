"""`dynamic.py`: what it promises about rows, choices, times and files, on tiny data."""

from __future__ import annotations

import doctest
import importlib
import json
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from dynamic.cells import DENSE, METHODS, Cell, Recipe, epsilon_for
from dynamic.choices import GRIDS, grid_cells, reference
from dynamic.lines import Line, lines_of
from dynamic.picture import spread
from dynamic.pieces import OutOfTimeError, Pieces
from dynamic.rows import append_row, missing, read_rows, run_cell, stored
from dynamic.sets import SETS, default_folder, is_there, load, load_for_choice
from dynamic.sparse import train

from ratoon import Augment
from ratoon.initialise import connections_wanted

MODULES = ("cells", "dense", "picture", "report", "rows")
SCRIPT = Path(__file__).parents[1] / "dynamic.py"
NOWHERE = Path("no such folder")


@pytest.fixture
def tiny():
    """Digits with a small network and 120 training rows."""
    task = load("digits", NOWHERE)
    return replace(task, hidden=(30, 20), train=task.train[:120])


def run(*options):
    return subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, options)], capture_output=True, text=True
    )


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    found = doctest.testmod(importlib.import_module(f"dynamic.{name}"))
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("density", [0.005, 0.01, 0.1])
def test_a_density_is_that_of_the_whole_network(density):
    widths = (784, 1568, 1568, 1568, 10)
    epsilon = epsilon_for(widths, density)
    counts = [connections_wanted(shape, epsilon=epsilon) for shape in pairwise(widths)]
    n_positions = sum(a * b for a, b in pairwise(widths))
    # Every layer rounds to whole connections.
    assert abs(sum(counts) - density * n_positions) <= len(counts)


def test_a_choice_sees_no_test_row():
    whole, choice = load("digits", NOWHERE), load_for_choice("digits", NOWHERE)
    assert not np.intersect1d(np.r_[choice.train, choice.test], whole.test).size
    assert np.array_equal(np.sort(np.r_[choice.train, choice.test]), whole.train)


def test_scaling_is_that_of_the_training_rows(tiny):
    scaling = tiny.scaling()
    z = (tiny.x[tiny.train] - scaling.shift) * scaling.scale
    assert abs(z.mean()) < 1e-6
    assert abs(z.std() - 1) < 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_with_the_connections_it_states(tiny, method):
    found = train(Cell("digits", method, 0.2, Recipe(3), 0), tiny)
    assert len(found["accuracy"]) == len(found["seconds"]) == len(found["connections"]) == 3
    wanted = 0.2 * sum(a * b for a, b in pairwise(tiny.widths))
    if method == "granet":  # from twice the connections
        assert wanted < np.mean(found["connections"]) < 2 * wanted
        assert abs(found["final_connections"] - wanted) <= 5
    else:
        assert abs(np.mean(found["connections"]) - wanted) <= 3


def test_the_recipe_changes_the_training(tiny):
    base = Cell("digits", "rigl", 0.2, Recipe(2), 0)

    def loss(**changed):
        return train(replace(base, recipe=replace(base.recipe, **changed)), tiny)["loss"]

    usual = loss()
    assert usual == loss()
    for changed in (
        {"learning_rate": 0.1},
        {"optimizer": "adam", "learning_rate": 0.001},
        {"schedule": "cosine"},
        {"batch": 16},
        {"weight_decay": 0.1},
        {"dropout": 0.5},
        {"activation": "all_relu", "slope": 0.3},
        {"smoothing": 0.2},
        {"augment": "shift=1"},
        {"strategy": {"every": 1}},
    ):
        assert loss(**changed) != usual, changed


def test_a_run_is_repeated_only_if_it_has_no_row(tmp_path):
    rows = tmp_path / "rows.csv"
    cells = [Cell("digits", "static", 0.2, Recipe(1), seed) for seed in (0, 1)]
    assert missing(rows, [*cells, cells[0]]) == cells
    found = run_cell(cells[0], NOWHERE)
    append_row(rows, cells[0], found)
    assert missing(rows, cells) == cells[1:]
    [(cell, row)] = read_rows(rows)
    assert cell == cells[0]
    assert {name: row[name] for name in ("accuracy", "seconds", "connections", "megabytes")} == {
        name: found[name] for name in ("accuracy", "seconds", "connections", "megabytes")
    }
    assert missing(rows, [replace(cells[0], is_choice=True)])
    assert 0.1 < row["accuracy"][-1] <= 1
    append_row(rows, cells[0], {**found, "accuracy": [0.5]})
    assert [row["accuracy"] for _, row in read_rows(rows)] == [[0.5]]  # the later


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(0.25, batch=100, learning_rate=0.005),
        Recipe(60, augment="shift=3+flip", optimizer="adam", schedule="cosine", dropout=0.1),
        Recipe(8, strategy={"every": 50, "anneal": "linear"}),
    ],
)
def test_a_cell_is_read_from_its_row(recipe):
    cell = Cell("cifar10", "snfs", 0.025, recipe, 2, is_choice=True)
    again = Cell.from_key(cell.key())
    assert again == cell
    assert again.recipe.strategy == recipe.strategy


def test_long_curves_are_stored_in_part():
    n = 100
    found = {
        "accuracy": list(np.arange(n) / n),
        "seconds": [1.0] * n,
        "connections": [5] * n,
        "megabytes": 1.0,
    }
    row = stored(found, most=25)
    assert len(row["accuracy"]) == 25
    assert row["accuracy"][-1] == 0.99
    assert row["seconds"] == [4.0] * 25
    assert stored(found, most=1)["seconds"] == [100.0]


def test_the_validation_part_chooses_the_recipe():
    rates = GRIDS["sparse"][32]
    cells = grid_cells("digits", "sparse", 5)
    rows = [(cell, {"accuracy": [0.99, 0.5 + cell.recipe.learning_rate]}) for cell in cells]
    rows.append((replace(cells[0], is_choice=False), {"accuracy": [1.0]}))
    assert reference("digits", "sparse", 5, rows).learning_rate == rates[-1]
    last = [cell for cell in cells if cell.recipe.learning_rate == rates[-1]]
    rows.append((last[1], {"accuracy": [float("nan")]}))  # one method of three diverges
    assert reference("digits", "sparse", 5, rows).learning_rate == rates[-2]
    assert reference("digits", "sparse", 5, rows[:1]) == Recipe(5)  # others are missing
    cells = grid_cells("cifar10", "sparse", 8)
    rows = [(cell, {"accuracy": [cell.recipe.batch / 200]}) for cell in cells]
    assert reference("cifar10", "sparse", 8, rows) == Recipe(8, 0.025, batch=100)


def line(method, accuracy, seconds):
    by_seed = {
        seed: {"accuracy": a, "seconds": s, "connections": 5, "megabytes": 1.0, "seeds": 1}
        for seed, (a, s) in enumerate(zip(accuracy, seconds, strict=True))
    }
    return Line("mnist", method, 0.01, Recipe(len(accuracy[0])), by_seed)


def test_time_to_an_accuracy_is_from_when_it_is_kept():
    found = line("rigl", [[0.5, 0.9, 0.7, 0.9], [0.5, 0.9, 0.7, 0.8]], [[2, 2, 2, 2], [1, 3, 2, 1]])
    assert found.curve()[0].tolist() == [1, 3, 5, 6]  # the least over the seeds
    assert found.time_to(0.85) == 6
    assert found.time_to(0.95) is None
    assert found.accuracy == pytest.approx(0.85)
    assert found.error == pytest.approx(0.05)
    assert line(DENSE, [[0.5, 0.9]], [[3, 2]]).curve()[0].tolist() == [2, 4]


def test_gains_are_paired_by_seed():
    one = line("rigl", [[0.8], [0.9]], [[1], [1]])
    other = line("static", [[0.7], [0.8], [0.1]], [[1], [1], [1]])
    mean, error = one.gain_over(other)
    assert mean == pytest.approx(0.1)
    assert error == pytest.approx(0.0, abs=1e-12)


def test_a_mean_over_seeds_counts_as_its_runs(tmp_path):
    values = np.array([0.71, 0.72, 0.76, 0.8])
    parts = line("rigl", values[:, None].tolist(), [[1.0]] * 4)
    rows = tmp_path / "rows.csv"
    first = Cell("mnist", "rigl", 0.01, Recipe(1), 0)
    mean = {"accuracy": [values[:3].mean()], "seconds": [1], "connections": 5, "megabytes": 1}
    error = np.std(values[:3], ddof=1) / np.sqrt(3)
    append_row(rows, first, {**mean, "error": error})
    rows.write_text(rows.read_text().replace("epochs=1,0,", "epochs=1,0-2,"))
    append_row(rows, replace(first, seed=3), {**mean, "accuracy": [0.8], "error": ""})
    cells = [replace(first, seed=seed) for seed in range(5)]
    assert missing(rows, cells) == cells[4:]
    [joined] = lines_of(read_rows(rows))
    assert joined.n_seeds == 4
    assert joined.accuracy == pytest.approx(parts.accuracy, abs=1e-6)  # the file has six digits
    assert joined.error == pytest.approx(parts.error, rel=1e-4)
    gain, spread_of_means = joined.gain_over(joined)  # not known by seed, so not paired
    assert gain == 0
    assert spread_of_means == pytest.approx(joined.error * np.sqrt(2))


def test_lines_join_seeds_and_leave_choices_out():
    cells = [Cell("digits", "static", 0.2, Recipe(1), seed) for seed in (0, 1)]
    row = {"accuracy": [0.5], "seconds": [1.0], "seeds": 1}
    rows = [(cell, row) for cell in (*cells, replace(cells[0], is_choice=True))]
    [found] = lines_of(rows)
    assert sorted(found.by_seed) == [0, 1]
    assert len(lines_of(rows, of_choices=True)) == 1


@pytest.mark.parametrize("places", [[0.0], [0.0, 0.0, 0.0], [0.0, 0.5, 0.6, 5.0]])
def test_labels_do_not_overlap(places):
    found = spread(places, 1.0)
    assert all(b - a >= 1.0 - 1e-9 for a, b in pairwise(found))
    assert np.mean(found) == pytest.approx(np.mean(places))


def test_dense_takes_the_steps_it_states(tiny):
    pytest.importorskip("torch")
    from dynamic import dense

    cell = Cell("digits", DENSE, 1.0, Recipe(1.5), 0)
    found = dense.train(cell, tiny)
    assert len(found["seconds"]) == 2  # one epoch, and a half
    assert found["accuracy"] == dense.train(cell, tiny)["accuracy"]
    assert found["connections"][0] == 64 * 30 + 30 * 20 + 20 * 10
    changed = dense.train(replace(cell, recipe=Recipe(1.5, augment="shift=1", dropout=0.2)), tiny)
    assert changed["accuracy"] != found["accuracy"]


@pytest.mark.parametrize("method", ["snfs", DENSE])
def test_a_training_in_pieces_equals_one_at_once(tiny, tmp_path, method):
    if method == DENSE:
        pytest.importorskip("torch")
        from dynamic.dense import train as train_method
    else:
        train_method = train
    cell = Cell("digits", method, 0.2, Recipe(3, dropout=0.3, augment="shift=1"), 0)
    pieces = Pieces(tmp_path, 0.0)  # the time is always up
    for _ in range(2):
        with pytest.raises(OutOfTimeError):
            train_method(cell, tiny, pieces)
    found, at_once = train_method(cell, tiny, pieces), train_method(cell, tiny)
    assert len(list(tmp_path.iterdir())) == 1
    pieces.forget(cell)
    assert not list(tmp_path.iterdir())
    assert len(found["seconds"]) == 3
    for name in ("accuracy", "connections", "loss", "megabytes"):
        assert found[name] == at_once[name]


def test_dense_images_are_shifted_and_flipped():
    pytest.importorskip("torch")
    from dynamic.dense import shifted

    x = np.arange(1, 2 * 16 + 1, dtype=np.uint8).reshape(1, -1).repeat(200, axis=0)
    found = shifted(x, Augment((2, 4, 4), 1, flip=True, channels="first"), np.random.default_rng(0))
    image = np.pad(x[0].reshape(2, 4, 4), ((0, 0), (1, 1), (1, 1)))
    flipped = np.pad(x[0].reshape(2, 4, 4)[..., ::-1], ((0, 0), (1, 1), (1, 1)))
    possible = {
        one[:, top : top + 4, left : left + 4].tobytes()
        for one in (image, flipped)
        for top in range(3)
        for left in range(3)
    }
    assert {one.tobytes() for one in found} == possible


@pytest.mark.parametrize("name", SETS)
def test_a_set_has_rows_of_both_parts_and_its_image(name):
    if not is_there(name, default_folder()):
        pytest.skip(f"{name} is not in ../shared/data")
    if name == "cifar10":
        pytest.importorskip("PIL")
    task = load(name, default_folder())
    assert not np.intersect1d(task.train, task.test).size
    assert task.train.size + task.test.size == task.y.size
    assert set(np.unique(task.y[task.test])) == set(range(task.widths[-1]))
    if task.image:
        assert np.prod(task.image) == task.widths[0]


def test_the_script_writes_tables_rows_and_a_picture(tmp_path):
    pytest.importorskip("torch")
    rows, out, picture, facts = (
        tmp_path / name for name in ("rows.csv", "out.md", "out.svg", "out.json")
    )
    options = ["--sets", "digits", "--densities", "1", "--methods", "dense,static,rigl"]
    options += ["--seeds", "0,1", "--epochs", "1", "--rows", rows]
    files = ["--out", out, "--picture", picture, "--json", facts]
    done = run(*options, *files)
    assert done.returncode == 0, done.stderr
    assert "**digits, 1 %**" in out.read_text()
    assert "Choices on the validation part" in out.read_text()
    assert sum(",test," in line for line in rows.read_text().splitlines()) == 2 * 2 + 1
    assert "<svg" in picture.read_text()
    assert {line["method"] for line in json.loads(facts.read_text())["lines"]} == {
        "dense",
        "static",
        "rigl",
    }
    before = rows.read_text()
    again = run(*options, "--report")
    assert again.returncode == 0, again.stderr
    assert rows.read_text() == before


def test_unknown_names_are_refused(tmp_path):
    for option, value in (("--methods", "rigel"), ("--sets", "mnits")):
        done = run(option, value, "--rows", tmp_path / "rows.csv")
        assert done.returncode == 1
        assert value in done.stderr
