"""Outputs that cannot be written: a full disk, closed streams, odd paths and terminals."""

import os
import random
import subprocess
import sys

import pytest

from tests.adversary.attacks import has_controls, repeat
from tests.adversary.test_command_line import prepare

resource = pytest.importorskip("resource")

COMMANDS = (
    "train data.csv --label class --hidden 4 --epsilon 2 --epochs 2 -o out.ratoon",
    "train data.csv --label class --hidden 4 --epsilon 2 --epochs 2 --checkpoint kept --every 1",
    "predict model.ratoon data.csv -o out.csv",
    "predict model.ratoon data.csv",
    "inspect model.ratoon",
    "inspect model.ratoon --json",
    "data make out.npz --samples 20 --features 12 --informative 2",
    "data show data.csv --label class",
    "train --help",
)
PATHS = (".", "absent/out", "dangling", "loop", "/dev/full", "/proc/out", "data.csv/out", "x" * 300)
STREAMS = ("", ">&-", "2>&-", ">&- 2>&-", ">/dev/full", "2>/dev/full", "| head -c0", "</dev/null")
ENVIRONMENTS = (
    {},
    {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
    {"COLUMNS": "1"},
    {"COLUMNS": "nonsense", "TERM": "dumb"},
    {"COLUMNS": "0", "LINES": "-1"},
    {"TERM": "", "NO_COLOR": "1", "FORCE_COLOR": "1"},
)
RUN = f"{sys.executable} -c 'import sys; from ratoon.cli import main; sys.exit(main())'"


def attack(seed, folder):
    choose = random.Random(seed)
    prepare_once(folder)
    words = choose.choice(COMMANDS).split()
    for place, word in enumerate(words):
        if word.startswith(("out", "kept")) and choose.random() < 0.5:
            words[place] = choose.choice(PATHS)
    limit = choose.choice((None, None, 0, 100, 4_000))
    stream = choose.choice(STREAMS)
    before = {path.name: path.read_bytes() for path in folder.glob("out*") if path.is_file()}

    def limit_files():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", f"{RUN} {' '.join(words)} {stream}"],
        cwd=folder,
        capture_output=True,
        timeout=120,
        check=False,
        env={**os.environ, **choose.choice(ENVIRONMENTS)},
        preexec_fn=limit_files,
    )
    how = (seed, words, stream, limit, done)
    shown = (done.stdout + done.stderr).decode(errors="replace")
    assert done.returncode in (0, 1, 2), how
    assert "Traceback" not in shown, how
    assert "internal error" not in shown, how
    assert "Exception ignored" not in shown, how
    plain = shown.replace("\x1b[", "")  # colours that FORCE_COLOR asks for
    assert not has_controls(plain), how
    if done.returncode:
        for name, content in before.items():
            assert (folder / name).read_bytes() == content, how
    assert not [path.name for path in folder.iterdir() if path.name.endswith(".tmp")], how


def prepare_once(folder):
    if not (folder / "model.ratoon").exists():
        prepare(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("outputs")


@pytest.mark.parametrize("seed", range(4))
def test_an_output_that_cannot_be_written_ends_with_a_message(folder, seed):
    attack(seed, folder)


@pytest.mark.soak
def test_outputs_that_cannot_be_written_end_with_a_message_for_long(folder, minutes, say):
    repeat(lambda seed: attack(seed, folder), minutes, say)
