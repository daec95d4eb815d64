"""Names of a model or data file cannot control the terminal, whatever characters they have."""

import csv
import io
import sys
import warnings

import numpy as np
import pytest

import ratoon as package
from ratoon.cli import main
from ratoon.cli.terminal import print_error, print_note, print_table, print_text, visible

HOSTILE = "\x1b]0;owned\x07\x1b[2J[red]\u202egene\x9b31m:warning:\r\x7f"
SHOWN = "\\x1b]0;owned\\x07\\x1b[2J[red]\\u202egene\\x9b31m:warning:\\r\\x7f"
ALLOWED = {"\n"}


def control_characters(text):
    return {c for c in text if not c.isprintable()} - ALLOWED


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A model and a data file whose features, classes and samples have such names."""
    folder = tmp_path_factory.mktemp("hostile")
    x = np.random.default_rng(0).normal(size=(40, 3))
    names = np.array([f"{HOSTILE}{k}" for k in range(3)])
    labels = np.where(x[:, 0] > 0, f"{HOSTILE}a", f"{HOSTILE}b")
    data = folder / "data.npz"
    np.savez(data, X=x, y=labels, feature_names=names)
    table = folder / "data.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        safe = HOSTILE.replace("\r", "")
        lines.writerow(["sample", *(f"{safe}{k}" for k in range(3)), "class"])
        for k, row in enumerate(x):
            lines.writerow([f"{safe}{k}", *row, f"{safe}{'ab'[int(row[0] > 0)]}"])
    import pandas as pd

    model = package.SparseMLPClassifier((8,), epsilon=3, max_iter=2, random_state=0)
    model.fit(pd.DataFrame(x, columns=names), labels).save(folder / "model.ratoon")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "inspect model.ratoon",
        "inspect model.ratoon --json",
        "data show data.npz",
        "data show data.csv --label class",
        "data show data.csv --label class --json",
        "evaluate model.ratoon data.npz",
        "evaluate model.ratoon data.npz --json",
        "evaluate model.ratoon data.csv --label class",
        "predict model.ratoon data.csv --json",
        "predict model.ratoon data.csv --min-coverage 0 --json",
        "select data.npz -k 2 --repeats 2",
        "select data.csv --label class -k 2 --repeats 2",
        "train data.csv --label class --test 0.3 --hidden 4 --epsilon 2 --epochs 2",
        "compare-strategies data.csv --label class --splits 1 --epochs 1 --hidden 5",
        "train data.csv --label absent",
    ],
)
def test_no_command_prints_a_control_character(hostile, capsys, monkeypatch, command):
    monkeypatch.chdir(hostile)
    main(command.split())
    printed = capsys.readouterr()
    assert printed.out + printed.err
    assert not control_characters(printed.out + printed.err)


@pytest.mark.parametrize("show", [print_error, print_note, print_text])
def test_messages_show_names_literally(capsys, show):
    show(f"unknown feature {HOSTILE}")
    printed = capsys.readouterr()
    assert f"unknown feature {SHOWN}\n" in printed.out + printed.err


def test_tables_show_names_literally_and_on_one_line(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    print_table(f"1\n{HOSTILE}", [f"2\n{HOSTILE}"], [[f"3\n{HOSTILE}"]])
    printed = capsys.readouterr().out
    for number in "123":
        assert f"{number}\\n{SHOWN}" in printed


def test_predictions_on_a_terminal_are_escaped_and_in_a_file_are_not(hostile, capsys, monkeypatch):
    arguments = ["predict", str(hostile / "model.ratoon"), str(hostile / "data.npz"), "-q"]
    assert main(arguments) == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out, newline="")))
    assert rows[1][1] in (f"{HOSTILE}a", f"{HOSTILE}b")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert SHOWN in printed
    assert not control_characters(printed)


def test_warnings_are_escaped(capsys, monkeypatch):
    from ratoon.cli.terminal import visible_warnings

    with visible_warnings():
        text = warnings.formatwarning(HOSTILE, UserWarning, "x.py", 1)
    assert visible(HOSTILE) in text
    assert not control_characters(text)


def test_control_characters_in_a_configuration_are_refused(ratoon, table, tmp_path):
    config = tmp_path / "train.toml"
    config.write_text('[train]\nepochs = "\\u001b[31m"\n')
    outcome = ratoon("train", table, "--config", config)
    assert outcome.code == 2
    assert "control characters" in outcome.err
