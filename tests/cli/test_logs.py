"""Logs: JSON lines, checkpoints, resuming, signals, warnings on one line, stdin, quiet."""

import io
import json
import logging
import os
import signal
import subprocess
import sys

import pytest

import ratoon as package
from ratoon.cli.logs import write_line
from tests.cli.conftest import write_table

MAIN = "import sys; from ratoon.cli import main; sys.exit(main())"
TRAIN = ("--label", "outcome", "--hidden", "20", "--density", "0.5")


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_every_epoch_and_note_is_a_json_object(ratoon, table, tmp_path):
    outcome = ratoon(
        "train", table, *TRAIN, "--epochs", "3", "-o", tmp_path / "m.ratoon", "--log-json"
    )
    assert outcome.code == 0
    found = lines(outcome.err)
    epochs = [line for line in found if line["event"] == "epoch"]
    model = package.load(tmp_path / "m.ratoon")
    assert [line["loss"] for line in epochs] == model.loss_curve_
    assert [line["epoch"] for line in epochs] == [1, 2, 3]
    assert all({"time", "level", "event", "message"} <= line.keys() for line in found)
    assert found[-1]["message"].startswith("The model is in")


def test_errors_are_json_too(ratoon, table):
    outcome = ratoon("train", table, "--label", "nowhere", "--log-json")
    assert outcome.code == 1
    last = lines(outcome.err)[-1]
    assert (last["level"], last["event"]) == ("error", "error")
    assert "nowhere" in last["message"]
    assert not ratoon("train", table, "--label", "nowhere").err.startswith("{"), "text again"


def run_alone(*arguments):
    """Run in a process of its own: pytest replaces what prints warnings."""
    command = [sys.executable, "-c", MAIN, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


def test_warnings_are_json_or_one_line(table):
    options = ("--hidden", "5", "--density", "1", "--epochs", "1", "--evolution", "set")
    text = run_alone("train", table, "--label", "outcome", *options)
    (warned,) = [line for line in text.splitlines() if "every layer has all" in line]
    assert warned.startswith("ratoon: warning: ")
    assert "set --density or --epsilon" in warned
    assert ".py:" not in text
    found = lines(run_alone("train", table, "--label", "outcome", *options, "--log-json"))
    (warned,) = [line for line in found if line["level"] == "warning"]
    assert warned["category"] == "RewiringHasNoEffectWarning"


def test_numbers_that_are_not_finite_are_null(capsys):
    write_line("info", "epoch", "x", loss=float("nan"), rate=float("inf"), epoch=1)
    line = json.loads(capsys.readouterr().err)
    assert (line["loss"], line["rate"], line["epoch"]) == (None, None, 1)


def test_checkpoints_are_logged_and_resuming_names_the_epoch(ratoon, table, tmp_path):
    run = ("train", table, *TRAIN, "--checkpoint", tmp_path / "run", "--every", "2")
    first = ratoon(*run, "--epochs", "4").err
    assert first.count("checkpoint of epoch") == 2
    assert "resuming" not in first
    again = ratoon(*run, "--epochs", "4", "--resume").err
    assert "resuming after epoch 4 of 4" in again


def test_the_logger_is_left_as_it_was(ratoon, table):
    logger = logging.getLogger("ratoon")
    before = (logger.level, logger.propagate, list(logger.handlers))
    ratoon("train", table, *TRAIN, "--epochs", "1", "--log-json")
    assert (logger.level, logger.propagate, list(logger.handlers)) == before


def test_python_users_can_log_epochs(two_epochs, caplog):
    with caplog.at_level(logging.INFO, logger="ratoon"):
        two_epochs()
    records = [record for record in caplog.records if record.event == "epoch"]
    assert [record.facts["epoch"] for record in records] == [1, 2]


@pytest.fixture
def two_epochs():
    def fit():
        model = package.SparseMLPClassifier((5,), density=0.5, max_iter=2)
        return model.fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])

    return fit


def test_quiet_prints_nothing_but_the_score_that_was_asked_for(ratoon, table, tmp_path):
    run = ("train", table, *TRAIN, "--epochs", "2", "-q")
    outcome = ratoon(*run, "--cv", "none", "-o", tmp_path / "m.ratoon")
    assert (outcome.out, outcome.err) == ("", "")
    assert (tmp_path / "m.ratoon").exists()
    outcome = ratoon(*run, "--test", "0.3")
    assert "scores on 18 held-out samples" in outcome.out
    assert outcome.err == ""


class Stdin(io.TextIOWrapper):
    def isatty(self):
        return False


def test_a_table_is_read_from_stdin(ratoon, model, table, monkeypatch):
    expected = ratoon("predict", model, table, "-q").out
    monkeypatch.setattr(sys, "stdin", Stdin(io.BytesIO(table.read_bytes())))
    outcome = ratoon("predict", model, "-")
    assert outcome.out == expected
    assert "stdin: " in outcome.err


def test_stdin_may_be_compressed(ratoon, model, table, monkeypatch):
    import gzip

    monkeypatch.setattr(sys, "stdin", Stdin(io.BytesIO(gzip.compress(table.read_bytes()))))
    assert ratoon("predict", model, "-", "-q").out == ratoon("predict", model, table, "-q").out


def test_stdin_has_a_limit_and_is_no_terminal(ratoon, model, table, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Stdin(io.BytesIO(table.read_bytes())))
    outcome = ratoon("predict", model, "-", "--read", "limits.file_bytes=100")
    assert outcome.code == 1
    assert "--read limits.file_bytes" in outcome.err
    stream = Stdin(io.BytesIO(b""))
    stream.isatty = lambda: True
    monkeypatch.setattr(sys, "stdin", stream)
    assert "terminal" in ratoon("predict", model, "-").err


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_sigterm_is_logged_with_the_epoch(tmp_path):
    table = write_table(tmp_path / "genes.csv")
    options = [*TRAIN, "--epochs", "1000000", "--checkpoint", tmp_path / "run", "--every", "10"]
    process = subprocess.Popen(
        [sys.executable, "-c", MAIN, "train", table, *options, "--log-json"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        before = []
        for line in process.stderr:
            before.append(line)
            if '"checkpoint"' in line:
                break
        process.send_signal(signal.SIGTERM)
        after = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert process.returncode == 143
    found = lines("".join(before) + after)
    (ended,) = [line for line in found if line["event"] == "signal"]
    written = [line["epoch"] for line in found if line["event"] == "checkpoint"]
    assert written[-1] == ended["epoch"]
