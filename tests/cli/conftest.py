import re
from typing import NamedTuple

import numpy as np
import pytest

from ratoon.cli import main

ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def ratoon(capsys):
    """Run a command as the shell would; give back exit code, stdout and stderr."""

    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, err = (ANSI.sub("", text) for text in capsys.readouterr())
        return Outcome(code, out, err)

    return run


def write_table(path, *, seed=0, n=60, columns=None, outcome=True):
    """Write samples with twelve genes; the outcome is the sign of the first."""
    x = np.random.default_rng(seed).normal(size=(n, 12))
    names = [f"gene{k}" for k in range(12)]
    header = ["sample", *(columns or names), *(["outcome"] if outcome else [])]
    lines = [",".join(header)]
    for index, row in enumerate(x):
        by_name = dict(zip(names, row, strict=True))
        cells = [f"{by_name.get(name, 0.5):.6f}" for name in columns or names]
        label = ["ill" if row[0] > 0 else "well"] if outcome else []
        lines.append(",".join([f"S{index}", *cells, *label]))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def table(tmp_path):
    return write_table(tmp_path / "genes.csv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def model(folder):
    """A classifier trained on such a table, as a file."""
    path = folder / "model.ratoon"
    data = write_table(folder / "training.csv", n=200)
    given = ["--label", "outcome", "--cv", "none", "-q", "-o", str(path)]
    assert main(["train", str(data), *given]) == 0
    return path


@pytest.fixture(scope="module")
def regressor(folder):
    x = np.random.default_rng(0).normal(size=(40, 5))
    np.savez(folder / "numbers.npz", X=x, y=x[:, 0] + 0.5)
    path = folder / "regressor.ratoon"
    given = ["--cv", "none", "-q", "-o", str(path)]
    assert main(["train", str(folder / "numbers.npz"), *given]) == 0
    return path
