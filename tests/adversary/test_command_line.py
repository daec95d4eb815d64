"""Every option of every command with any text: it works or ends with a readable message."""

import os
import random
import signal
import socket

import numpy as np
import pytest
import typer

import ratoon as package
from ratoon.cli import main
from ratoon.cli.app import app
from tests.adversary.attacks import has_controls, repeat

TEXTS = (
    *("", " ", "0", "-0", "-1", "1", "2", "0.5", "1.5", "1e308", "1e400", "5e-324", "nan", "inf"),
    *("-inf", "1000000000000", "-1000000000000", "9223372036854775808", "1" + 400 * "0", "1_0"),
    *("0x10", "\u0663", "None", "auto", "x", "true", "[]", "{}", ",", "1,,2", "a,b", "=1+1", "--"),
    *("\x1b[31m", "a\nb", "\ud800", "x" * 5_000, ".", "..", "/", "/dev/null", "/dev/full"),
    *("absent/out", "data.csv", "model.ratoon", "dangling", "loop", "deep.toml", "3000000000,2"),
)
USUAL = {
    "train": "data.csv --label class --hidden 4 --epsilon 2 --epochs 1",
    "predict": "model.ratoon data.csv",
    "evaluate": "model.ratoon data.csv --label class",
    "inspect": "model.ratoon",
    "select": "data.csv --label class -k 2 --repeats 1",
    "compare": "data.csv --label class --folds 2 --repeats 1",
    "compare-strategies": "data.csv --label class --splits 1 --epochs 1 --hidden 4",
    "report": "model.ratoon data.csv --label class",
    "explain": "model.ratoon data.csv",
    "enrich": "model.ratoon sets.gmt --least 1",
    "export": "model.ratoon -o out.onnx",
    "slim": "model.ratoon data.csv --label class -o slim.ratoon",
    "plan": "40 --samples 20",
    "data show": "data.csv --label class",
    "data list": "",
    "data make": "made.npz --samples 20 --features 12 --informative 2",
}
SLOW = ("compare", "compare-strategies", "report", "select", "evaluate", "export")
"""Commands that fit several models or draw: tried by the soak test alone."""
LONG_RUNS = ("--epochs", "--repeats", "--splits", "--samples", "--features", "--folds", "--inner")
LONG_RUNS += ("--permutations", "--stability", "--outputs", "--batch-size")
SECONDS = 60


def commands(above=None, words=()):
    above = above or typer.main.get_command(app)
    for name, command in above.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


OPTIONS = {
    name: [(one.opts[0], one.is_flag) for one in command.params if hasattr(one, "is_flag")]
    for name, command in commands()
    if name in USUAL
}


def test_every_command_is_tried():
    others = {"demo", "reproduce", "bench", "data fetch", "serve"}  # long, or the network
    assert {name for name, _ in commands()} == {*USUAL, *others}


def prepare(folder):
    """Write a table, a model, and files that are none of these."""
    x = np.random.default_rng(0).normal(size=(30, 4)).round(3)
    lines = [",".join(map(str, [f"S{k}", *row, "ab"[int(row[0] > 0)]])) for k, row in enumerate(x)]
    (folder / "data.csv").write_text("\n".join(["sample,f0,f1,f2,f3,class", *lines]) + "\n")
    from ratoon.datasets import read

    data = read(folder / "data.csv", label="class")
    model = package.SparseMLPClassifier((4,), epsilon=2, max_iter=1, random_state=0)
    model.fit(data).save(folder / "model.ratoon")
    (folder / "sets.gmt").write_text("SET_A\tnone\tf0\tf1\nSET_B\tnone\tf2\tf3\n")
    (folder / "deep.toml").write_text("a = " + "[" * 5_000)
    (folder / "dangling").symlink_to("nowhere/at/all")
    (folder / "loop").symlink_to("loop")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)

    def refuse(*args):
        raise AssertionError("a network connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    return tmp_path


def run(arguments, capsys):
    """Run a command; fail on anything but an exit code and readable output."""

    def stop(*_):
        raise AssertionError(f"still running after {SECONDS} seconds: {arguments}")

    capsys.readouterr()
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        code = main(arguments)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    out, err = capsys.readouterr()
    assert code in (0, 1, 2), (arguments, code)
    assert "internal error" not in err, (arguments, err)
    assert "Traceback" not in out + err, (arguments, out + err)
    assert not has_controls(out + err), (arguments, out + err)
    assert code == 0 or err.strip(), (arguments, "no message")
    assert len(err) < 20_000, (arguments, err[:200])


def is_long_run(option, text):
    """Whether this is a valid request for more work than a test may do."""
    digits = text.replace("_", "")
    return option in LONG_RUNS and digits.isdecimal() and int(digits) > 2


def arguments_of(command, given):
    words = [*command.split(), *USUAL[command].split()]
    for option, text in given:
        words += [option] if text is None else [option, text]
    return words


def attack(seed, capsys, command=None, n=1):
    choose = random.Random(seed)
    command = command or choose.choice(list(USUAL))
    given = []
    for option, is_flag in choose.sample(OPTIONS[command], min(n, len(OPTIONS[command]))):
        text = None if is_flag else choose.choice(TEXTS)
        if text is None or not is_long_run(option, text):
            given.append((option, text))
    run(arguments_of(command, given), capsys)


CASES = [
    (command, option)
    for command, options in OPTIONS.items()
    if command not in SLOW
    for option, is_flag in options
    if not is_flag and option != "--report"
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("command", "option"), CASES)
def test_any_text_for_an_option_ends_with_a_readable_message(folder, capsys, command, option):
    choose = random.Random(f"{command} {option}")
    for text in choose.sample(TEXTS, 2):
        if not is_long_run(option, text):
            run(arguments_of(command, [(option, text)]), capsys)


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore")
def test_any_text_for_options_ends_with_a_readable_message_for_long(folder, capsys, minutes, say):
    def renew(seed):
        for path in folder.iterdir():
            if path.is_file() and not path.is_symlink() and os.access(path, os.W_OK):
                path.unlink()
        for name in ("dangling", "loop"):
            (folder / name).unlink(missing_ok=True)
        prepare(folder)
        for k in range(20):
            attack(f"{seed} {k}", capsys, n=random.Random(k).randint(1, 4))

    repeat(renew, minutes, say)
