"""Errors on purpose end with a message and a code; all others are left to be seen."""

import json

import numpy as np
import pytest
import typer

from ratoon.cli.terminal import blaming_the_data, guarded, print_json, print_table
from ratoon.errors import FormatError, InvalidInputError


def ends(error):
    @guarded
    def command():
        raise error

    with pytest.raises(typer.Exit) as end:
        command()
    return end.value.exit_code


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (FormatError("x.ratoon: damaged"), 1, "x.ratoon: damaged"),
        (PermissionError(13, "Permission denied", "x"), 1, "Permission denied"),
        (FileNotFoundError(2, "No such file", "x.csv"), 1, "x.csv: no such file."),
        (FileNotFoundError("nothing there"), 1, "nothing there"),
        (MemoryError(), 1, "not enough memory"),
        (KeyboardInterrupt(), 130, "interrupted."),
        (KeyboardInterrupt("Go on."), 130, "interrupted. Go on."),
    ],
)
def test_what_can_be_expected_gets_a_message(capsys, error, code, message):
    assert ends(error) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("error", [ZeroDivisionError, BrokenPipeError, ValueError])
def test_other_errors_are_not_swallowed(error):
    @guarded
    def command():
        raise error

    with pytest.raises(error):
        command()


def test_complaints_of_others_about_data_become_ours():
    with pytest.raises(InvalidInputError, match="NaN"), blaming_the_data():
        raise ValueError("Input X contains NaN.")
    with pytest.raises(FormatError), blaming_the_data():
        raise FormatError("ours already")


def test_numbers_of_numpy_are_numbers_in_json(capsys):
    print_json({"a": np.float32(0.5), "b": np.int64(3), "c": np.arange(2)})
    assert json.loads(capsys.readouterr().out) == {"a": 0.5, "b": 3, "c": [0, 1]}


def test_square_brackets_survive_in_tables(capsys):
    print_table("x [bold]", ["[name]"], [["[red]gene"]])
    shown = capsys.readouterr().out
    assert "x [bold]" in shown
    assert "[name]" in shown
    assert "[red]gene" in shown
