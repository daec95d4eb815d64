"""The command itself: help, exit codes, version."""

import subprocess
import sys

import pytest
import typer.main

import ratoon as package
from ratoon.cli.app import app


def commands_below(command, *words):
    if hasattr(command, "commands"):
        for name, one in command.commands.items():
            yield from commands_below(one, *words, name)
    else:
        yield list(words)


COMMANDS = list(commands_below(typer.main.get_command(app)))


def test_documented_commands_exist():
    known = {" ".join(words) for words in COMMANDS}
    assert known >= {"demo", "train", "predict", "evaluate", "inspect", "plan", "bench"}
    assert known >= {"data show", "data list", "data fetch", "data make"}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_help_text_has_an_example_and_fits_80_columns(ratoon, command):
    outcome = ratoon(*command, "--help")
    assert outcome.code == 0
    assert "For example" in outcome.out
    assert f" ratoon {' '.join(command)}" in outcome.out.split("For example")[1]
    assert max(len(line) for line in outcome.out.splitlines()) <= 80


def test_help_lists_all_commands_and_where_to_start(ratoon):
    outcome = ratoon("--help")
    assert outcome.code == 0
    for command, *_ in COMMANDS:
        assert f" {command} " in outcome.out
    assert "Start with ratoon demo" in outcome.out


def test_markup_leaves_no_holes_in_help(ratoon):
    # Square brackets are markup to the terminal library; what is in them must not vanish.
    words = " ".join(ratoon("train", "--help").out.replace("│", " ").split())
    assert "any of these options in a table called train." in words
    assert "Instead of --epsilon: fraction of possible connections, in (0, 1]." in words


@pytest.mark.parametrize(("group", "command"), [([], "train"), (["data"], "fetch")])
def test_no_command_is_a_wrong_call_that_shows_help(ratoon, group, command):
    outcome = ratoon(*group)
    assert outcome.code == 2
    assert command in outcome.out + outcome.err


@pytest.mark.parametrize(
    "wrong", [["dance"], ["train"], ["train", "x.csv", "--bogus"], ["plan", "0"], ["demo", "extra"]]
)
def test_a_wrong_call_ends_with_2(ratoon, wrong):
    outcome = ratoon(*wrong)
    assert outcome.code == 2
    assert outcome.out == ""
    assert "Traceback" not in outcome.err


def test_the_version_is_the_packages(ratoon):
    assert ratoon("--version").out == f"ratoon {package.__version__}\n"


def test_a_closed_pipe_prints_no_error(model):
    table = model.parent / "training.csv"
    script = "import sys; from ratoon.cli import main; sys.exit(main(sys.argv[1:]))"
    ratoon = [sys.executable, "-c", script, "predict", str(model), str(table)]
    with subprocess.Popen(ratoon, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        errors = process.stderr.read().decode()
    assert "Traceback" not in errors
    assert "Broken pipe" not in errors
