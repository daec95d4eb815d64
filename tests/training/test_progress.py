"""The progress bar: how far, how well, and a tidy end."""

import io
import pickle

import numpy as np
import pytest

from ratoon.training import ProgressBar, TrainingData, TrainingPlan
from tests.training.cases import accuracy, samples, training


def shown(n_epochs=3, ncols=120, **more):
    screen = io.StringIO()
    bar = ProgressBar("learning", file=screen, ncols=ncols)
    run = training(TrainingPlan(n_epochs=n_epochs), callbacks=[bar], **more)
    return run, screen, bar


def test_it_shows_epoch_loss_score_and_connections():
    held = TrainingData.of(*samples(9, seed=1), np.float32)
    run, screen, _ = shown(validation=held, scorer=accuracy)
    run.run()
    last = screen.getvalue().split("\r")[-1]
    assert "learning: 100%" in last
    assert "epoch=3" in last
    assert f"loss={run.history[-1].loss:.4g}" in last
    assert f"score={run.history[-1].validation_score:.4g}" in last
    assert f"connections={run.network.n_connections:,}" in last


@pytest.mark.parametrize(
    ("ncols", "expected"),
    [(80, ["epoch", "loss", "score"]), (60, ["epoch", "loss"]), (40, []), (None, None)],
)
def test_a_narrow_terminal_shows_fewer_values(ncols, expected):
    held = TrainingData.of(*samples(9, seed=1), np.float32)
    run, screen, _ = shown(ncols=ncols, validation=held, scorer=accuracy)
    run.run()
    lines = screen.getvalue().rstrip().split("\r")
    names = [part.strip().partition("=")[0] for part in lines[-1].split(",")[1:] if "=" in part]
    assert names == (["epoch", "loss", "score", "connections"] if expected is None else expected)
    if ncols is not None:
        assert max(map(len, lines)) <= ncols
        assert lines[-1].count("#") >= 9  # no Unicode outside a terminal


def test_a_training_that_continues_begins_a_new_bar():
    run, screen, _ = shown(4)
    run.run(2)
    assert " 50%" in screen.getvalue()
    run.run()
    assert "epoch=4" in screen.getvalue()


def test_the_bar_moves_within_an_epoch():
    run, screen, bar = shown(1)
    bar.on_fit_begin(run)
    bar.on_progress(run, 1)  # of two minibatches
    bar.on_fit_end(run)
    assert " 50%" in screen.getvalue()


def test_without_a_training_nothing_happens():
    run, screen, bar = shown()
    run.run_epoch()
    bar.on_fit_end(run)
    assert screen.getvalue() == ""


def test_it_can_be_pickled():
    assert pickle.loads(pickle.dumps(ProgressBar("x"))).description == "x"


def test_a_log_gets_lines_instead_of_a_bar(capsys):
    run = training(TrainingPlan(n_epochs=3), callbacks=[ProgressBar("learning")])
    run.run()
    text = capsys.readouterr().err
    assert "\r" not in text
    [line] = text.splitlines()
    assert line.startswith(
        f"learning: 3 of 3 epochs, loss={run.history[-1].loss:.4g}, connections="
    )


def test_a_long_training_writes_a_line_every_few_seconds(capsys, monkeypatch):
    seconds = iter(range(0, 1000, 3))
    monkeypatch.setattr("ratoon.training.progress.time.monotonic", lambda: next(seconds))
    training(TrainingPlan(n_epochs=6), callbacks=[ProgressBar("learning")]).run()
    lines = capsys.readouterr().err.splitlines()
    assert 2 <= len(lines) <= 6
    assert lines[-1].startswith("learning: 6 of 6 epochs")
    assert len(set(lines)) == len(lines)


def test_a_training_that_continues_counts_its_epochs_from_the_start(capsys):
    run = training(TrainingPlan(n_epochs=4), callbacks=[ProgressBar("learning")])
    run.run(2)
    run.run()
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("learning: 2 of 4 epochs")
    assert second.startswith("learning: 4 of 4 epochs")
