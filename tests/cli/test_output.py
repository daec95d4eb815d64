"""Output files: refused before the work, written as a whole, and safe in a spreadsheet."""

import csv
import errno
import io
import os
import shutil
import stat
from collections import namedtuple

import numpy as np
import pytest

import ratoon as package
from ratoon.cli import output
from ratoon.storage import atomic

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def untouched(monkeypatch):
    """Fail if a data or model file is read."""

    def read(*args, **kwargs):
        raise AssertionError("the output was not checked first")

    for name in ("train", "predict", "select", "report", "compare"):
        monkeypatch.setattr(f"ratoon.cli.{name}.read_samples", read)
    for name in ("predict", "report"):
        monkeypatch.setattr(f"ratoon.cli.{name}.load_model", read)


COMMANDS = [
    ("train", "DATA", "-o"),
    ("train", "DATA", "--report"),
    ("predict", "MODEL", "DATA", "-o"),
    ("evaluate", "MODEL", "DATA", "--picture"),
    ("select", "DATA", "-o"),
    ("select", "DATA", "--picture"),
    ("report", "MODEL", "DATA", "-o"),
    ("compare-strategies", "DATA", "--plot"),
    ("data", "make"),
    ("demo", "-o"),
]


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent/out.png", "there is no folder"),
        ("folder.png", "it is a directory"),
        ("file/out.png", "there is no folder"),
        (f"{300 * 'x'}.png", "too long"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_the_work(
    ratoon, tmp_path, command, name, message
):
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "file").write_text("")
    outcome = ratoon(*command, f"{tmp_path}/{name}")
    assert outcome.code == 1
    assert message in outcome.err.lower()
    assert sorted(os.listdir(tmp_path)) == ["file", "folder.png"]


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize(
    "command", [("train", "DATA", "--checkpoint"), ("reproduce", "accuracy", "-o")]
)
def test_a_folder_that_cannot_be_made_is_refused_before_the_work(ratoon, tmp_path, command):
    (tmp_path / "file").write_text("")
    outcome = ratoon(*command, tmp_path / "file" / "new")
    assert outcome.code == 1
    assert "file is a file, and a folder is needed" in outcome.err


def test_a_folder_without_permission_is_refused_before_the_work(monkeypatch, tmp_path):
    # The tests may run as root, whom no permission stops.
    opened = os.open

    def refuse(path, flags, *args, **kwargs):
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return opened(path, flags, *args, **kwargs)

    monkeypatch.setattr(atomic.os, "open", refuse)
    with pytest.raises(atomic.SaveError, match="the folder cannot be written to: Permission"):
        atomic.check_target(tmp_path / "x.ratoon")


def test_a_disk_without_room_for_the_model_is_refused_before_training(
    ratoon, table, tmp_path, monkeypatch
):
    monkeypatch.setattr("ratoon.cli.train.fit", lambda *args, **kwargs: pytest.fail("trained"))
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 10**12 - 10**6, 10**6))
    options = ("--label", "outcome", "--hidden", "3000,3000", "--epsilon", "50", "--epochs", "1")
    outcome = ratoon("train", table, *options, "-o", tmp_path / "m.ratoon", "-q")
    assert outcome.code == 1
    assert "will have about" in outcome.err
    assert "1.0 MB are free" in outcome.err


def test_a_disk_without_room_for_the_checkpoints_is_refused_before_training(
    ratoon, table, tmp_path, monkeypatch
):
    monkeypatch.setattr("ratoon.cli.train.fit", lambda *args, **kwargs: pytest.fail("trained"))
    free = [10**6]
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**12, 10**12 - free[0], free[0]))
    network = ("--label", "outcome", "--hidden", "3000,3000", "--epsilon", "20", "--epochs", "1")
    command = ("train", table, *network, "-q", "--checkpoint", tmp_path / "kept")
    outcome = ratoon(*command)
    assert outcome.code == 1
    assert "the last 2 checkpoints and the next one need about" in outcome.err
    assert "1.0 MB are free" in outcome.err
    assert not (tmp_path / "kept").exists()
    # What earlier checkpoints take will be replaced.
    (tmp_path / "kept").mkdir()
    with (tmp_path / "kept/0000000010.ratoon").open("wb") as file:
        file.truncate(10**9)
    with pytest.raises(pytest.fail.Exception, match="trained"):
        ratoon(*command, "--resume")


def test_the_estimated_size_of_a_checkpoint_is_right_and_never_too_large(tmp_path):
    from ratoon.estimators.planning import checkpoint_bytes
    from ratoon.storage import Checkpoint

    x = np.random.default_rng(0).normal(size=(60, 200))
    how = {"hidden_layer_sizes": (500, 500), "epsilon": 20, "max_iter": 1, "solver": "adam"}
    for more in ({}, {"hidden_layer_sizes": None, "epsilon": None, "solver": "auto"}):
        folder = tmp_path / str(len(more))
        estimator = package.SparseMLPClassifier(**{**how, **more})
        planned = checkpoint_bytes(estimator, 200, 60, 3)
        estimator.set_params(callbacks=[Checkpoint(folder)]).fit(x, np.arange(60) % 3)
        [written] = folder.glob("*.ratoon")
        assert 0.5 < planned / written.stat().st_size <= 1.02


@pytest.mark.parametrize(
    "settings",
    [
        {"hidden_layer_sizes": (500, 500), "epsilon": 20},
        {"hidden_layer_sizes": (500,), "epsilon": 20, "solver": "adam"},
        {"hidden_layer_sizes": (500,), "epsilon": 20, "dtype": "bfloat16"},
        {},
    ],
)
def test_the_estimated_size_of_a_model_file_is_right_and_never_too_large(tmp_path, settings):
    from ratoon.estimators.planning import file_bytes

    x = np.random.default_rng(0).normal(size=(60, 200))
    y = np.arange(60) % 3
    estimator = package.SparseMLPClassifier(**settings, max_iter=1 if settings else None)
    planned = file_bytes(estimator, 200, 60, 3)
    estimator.fit(x, y).save(tmp_path / "m.ratoon")
    fraction = planned / (tmp_path / "m.ratoon").stat().st_size
    assert (0.5 if settings else 0.0) < fraction <= 1.02


def test_a_model_that_cannot_be_saved_at_the_end_is_rescued(ratoon, table, tmp_path, monkeypatch):
    save = package.SparseMLPClassifier.save
    target, rescue = tmp_path / "m.ratoon", tmp_path / "rescue"
    rescue.mkdir()

    def full(self, path, **options):
        if str(path) == str(target):
            raise atomic.SaveError(errno.ENOSPC, "not saved: No space left on device", str(path))
        save(self, path, **options)

    monkeypatch.setattr(package.SparseMLPClassifier, "save", full)
    monkeypatch.setattr("tempfile.tempdir", str(rescue))
    outcome = ratoon("train", table, "--label", "outcome", "-o", target, "-q")
    assert outcome.code == 1
    (saved,) = rescue.iterdir()
    assert "No space left on device" in outcome.err
    assert f"saved in {saved} instead" in outcome.err
    assert package.load(saved).classes_.tolist() == ["ill", "well"]


def test_a_report_of_fit_is_refused_before_training(tmp_path):
    model = package.SparseMLPClassifier((4,), max_iter=1)
    for path, message in [(tmp_path, "it is a directory"), (tmp_path / "a" / "b", "no folder")]:
        with pytest.raises(package.errors.InvalidInputError, match=message):
            model.fit([[0.0], [1.0]], [0, 1], report=path)
    assert not hasattr(model, "network_")


# ---------------------------------------------------------------------------------- as a whole


@pytest.mark.parametrize(
    "command",
    [
        ("predict", "MODEL", "DATA", "-o", "out.csv"),
        ("evaluate", "MODEL", "DATA", "--label", "outcome", "--picture", "out.png"),
        ("select", "DATA", "--label", "outcome", "-k", "2", "--repeats", "2", "-o", "out.csv"),
        ("select", "DATA", "--label", "outcome", "-k", "2", "--repeats", "2", "--picture", "o.png"),
        ("report", "MODEL", "DATA", "--label", "outcome", "-o", "out.html"),
        ("data", "make", "out.npz", "--features", "20", "--informative", "5"),
    ],
    ids=" ".join,
)
def test_a_failed_write_leaves_the_old_file(ratoon, model, table, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    name = next(word for word in command[::-1] if word.startswith("o") and "." in word)
    (tmp_path / name).write_text("old")
    files = {"MODEL": model, "DATA": table}
    arguments = [files.get(word, word) for word in command]

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "_sync", full)
        outcome = ratoon(*arguments)
    assert outcome.code == 1
    assert "unchanged" in outcome.err
    assert (tmp_path / name).read_text() == "old"
    assert not [left for left in os.listdir(tmp_path) if left.endswith(".tmp")]
    assert ratoon(*arguments).code == 0
    assert (tmp_path / name).read_bytes() != b"old"


def test_a_table_that_cannot_be_written_is_printed(ratoon, table, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic, "_sync", full)
    options = ("--label", "outcome", "-k", "12", "--repeats", "2", "-o", tmp_path / "out.csv")
    outcome = ratoon("select", table, *options)
    assert outcome.code == 1
    assert all(f"gene{k}" in outcome.out for k in range(12))


def test_predictions_can_be_written_to_a_pipe(ratoon, model, table, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert ratoon("predict", model, table, "-q", "-o", tmp_path / "pipe").code == 0
        assert os.read(reader, 100).startswith(b"sample,prediction\n")
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)


# --------------------------------------------------------------------------------- spreadsheets


@pytest.mark.parametrize(
    "name", ["=1+1", "+cmd", "-cmd", "@sum", "\tx", "\rx", "\nx", "-1+2", "--1"]
)
def test_a_name_that_looks_like_a_formula_is_text(name):
    def read(**options):
        text = output.csv_text([name], [], **options)
        return next(csv.reader(io.StringIO(text, newline="")))

    assert read() == [f"'{name}"]
    assert read(escape_formulas=False) == [name]


@pytest.mark.parametrize("cell", ["-1", "+2.5", "-1e-3", "-.5", -0.25, -3, "gene=1", "a-b", ""])
def test_numbers_and_other_names_are_written_unchanged(cell):
    assert output.csv_text(["x", "y"], [(cell, 1)]) == f"x,y\n{cell},1\n"


def test_commands_escape_formulas_unless_told_otherwise(ratoon, tmp_path):
    x = np.random.default_rng(0).normal(size=(40, 3))
    labels = np.where(x[:, 0] > 0, "=1+1", "-1")
    np.savez(tmp_path / "d.npz", X=x, y=labels, feature_names=np.array(["@a", "+b", "c"]))
    model = package.SparseMLPClassifier((8,), max_iter=2, random_state=0).fit(x, labels)
    model.save(tmp_path / "m.ratoon")
    predict = ("predict", tmp_path / "m.ratoon", tmp_path / "d.npz", "-q", "-p")
    header, *rows = csv.reader(ratoon(*predict).out.splitlines())
    assert header == ["sample", "prediction", "p(-1)", "p(=1+1)"]
    assert {row[1] for row in rows} <= {"'=1+1", "-1"}
    header, *rows = csv.reader(ratoon(*predict, "--no-escape-formulas").out.splitlines())
    assert {row[1] for row in rows} <= {"=1+1", "-1"}
    select = ("select", tmp_path / "d.npz", "-k", "3", "--repeats", "2", "-q", "-o")
    assert ratoon(*select, tmp_path / "out.tsv").code == 0
    rows = list(csv.DictReader((tmp_path / "out.tsv").read_text().splitlines(), delimiter="\t"))
    assert {row["feature"] for row in rows} == {"'@a", "'+b", "c"}
