"""Expected errors end with a message and an exit code; tables and JSON are printed as given."""

import json

import numpy as np
import pytest
import typer

from ratoon.cli.options import input_errors
from ratoon.cli.terminal import guarded, print_json, print_table
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
        (KeyboardInterrupt("Continue."), 130, "interrupted. Continue."),
    ],
)
def test_an_expected_error_ends_with_a_message_and_a_code(capsys, error, code, message):
    assert ends(error) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("error", [ZeroDivisionError, BrokenPipeError, ValueError])
def test_other_errors_are_not_swallowed(error):
    @guarded
    def command():
        raise error

    with pytest.raises(error):
        command()


def test_value_errors_of_scikit_learn_become_input_errors():
    with pytest.raises(InvalidInputError, match="NaN"), input_errors():
        raise ValueError("Input X contains NaN.")
    with pytest.raises(FormatError), input_errors():
        raise FormatError("unchanged")


def test_numbers_of_numpy_are_numbers_in_json(capsys):
    print_json({"a": np.float32(0.5), "b": np.int64(3), "c": np.arange(2)})
    assert json.loads(capsys.readouterr().out) == {"a": 0.5, "b": 3, "c": [0, 1]}


def test_square_brackets_survive_in_tables(capsys):
    print_table("x [bold]", ["[name]"], [["[red]gene"]])
    shown = capsys.readouterr().out
    assert "x [bold]" in shown
    assert "[name]" in shown
    assert "[red]gene" in shown
