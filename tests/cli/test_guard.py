"""Errors on purpose end with a message and a code; all others are left to be seen."""

import pytest
import typer

from ratoon.cli.guard import blaming_the_data, guarded
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
