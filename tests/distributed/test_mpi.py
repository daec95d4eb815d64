"""Two processes under MPI train what one process trains."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ratoon import load
from ratoon.datasets import make_microarray, write
from tests.processes import LOOKS_FOR_RACES

BIN = Path(sys.executable).parent
MPIEXEC = BIN / "mpiexec"

try:
    import mpi4py  # noqa: F401
except ImportError:
    pytest.skip("mpi4py is not installed", allow_module_level=True)
if not MPIEXEC.exists():
    pytest.skip("there is no mpiexec next to this Python", allow_module_level=True)

pytestmark = [
    pytest.mark.slow,  # every rank is a new process
    pytest.mark.skipif(LOOKS_FOR_RACES, reason="MPICH crashes at its own end there"),
]

TRAIN = ["--hidden", "50", "--epochs", "4", "--batch-size", "10", "--seed", "3", "--json"]
TRAIN += ["--average-every", "gradients"]


def run(n_ranks, *arguments):
    command = [BIN / "ratoon", "train", *arguments, "--distributed", "mpi"]
    done = subprocess.run(
        [MPIEXEC, "-n", str(n_ranks), *command], capture_output=True, text=True, timeout=240
    )
    return done


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("mpi") / "data.npz"
    write(make_microarray(40, 200, n_informative=20, random_state=0)[0], path)
    return path


def test_two_ranks_train_the_model_of_one(data, tmp_path):
    losses = []
    for n_ranks in (1, 2):
        done = run(n_ranks, data, *TRAIN, "-o", tmp_path / f"{n_ranks}.ratoon")
        assert done.returncode == 0, done.stderr
        losses.append(json.loads(done.stdout)["loss"])
    one, two = (load(tmp_path / f"{n}.ratoon").network_ for n in (1, 2))
    # The same products, summed in another order.
    assert_allclose(losses[0], losses[1], rtol=1e-5)
    for a, b in zip(one.layers, two.layers, strict=True):
        assert np.array_equal(a.topology.packed, b.topology.packed)
        assert_allclose(a.weights, b.weights, rtol=1e-3, atol=1e-5)


def test_another_number_of_ranks_resumes_a_checkpoint(data, tmp_path):
    folder = tmp_path / "run"
    first = run(2, data, *TRAIN, "--checkpoint", folder, "--every", "2")
    assert first.returncode == 0, first.stderr
    again = run(1, data, *TRAIN, "--checkpoint", folder, "--every", "2", "--resume")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["loss"] == json.loads(first.stdout)["loss"]


def test_an_error_ends_all_ranks_with_a_message(data):
    done = run(2, data, *TRAIN, "--density", "7")
    assert done.returncode != 0
    assert "density" in done.stdout + done.stderr
