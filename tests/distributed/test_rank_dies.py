"""A killed rank ends the job, and another number of ranks continues from its checkpoint."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from ratoon.cli.app import app
from ratoon.datasets import make_microarray, write
from tests.processes import LOOKS_FOR_RACES

pytest.importorskip("mpi4py", reason="mpi4py is not installed")

BIN = Path(sys.executable).parent
if not (BIN / "mpiexec").exists():
    pytest.skip("there is no mpiexec next to this Python", allow_module_level=True)

pytestmark = [
    pytest.mark.slow,  # every rank is a new process
    pytest.mark.skipif(LOOKS_FOR_RACES, reason="MPICH crashes at its own end there"),
]

# The command line itself, but for rank 1, which kills itself after its fifth epoch.
DYING = """
import os, signal, sys
import ratoon.distributed
from ratoon.cli import main

class Dying(ratoon.distributed.DataParallel):
    def on_epoch_end(self, training, record):
        if self.communicator.rank == 1 and training.epochs_done == 5:
            os.kill(os.getpid(), signal.SIGKILL)

ratoon.distributed.DataParallel = Dying
sys.exit(main())
"""


def run(n_ranks, *command):
    return subprocess.run(
        [BIN / "mpiexec", "-n", str(n_ranks), *command],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_a_killed_rank_ends_the_job_and_one_rank_resumes_it(tmp_path):
    data, folder = tmp_path / "data.npz", tmp_path / "run"
    write(make_microarray(40, 100, n_informative=20, random_state=0)[0], data)
    (tmp_path / "dying.py").write_text(DYING)
    train = ["train", data, "--hidden", "30", "--epochs", "8", "--batch-size", "10", "--json"]
    together = [*train, "--distributed", "mpi", "--average-every", "gradients"]
    together += ["--checkpoint", folder, "--every", "2"]

    killed = run(2, sys.executable, tmp_path / "dying.py", *together)

    assert killed.returncode != 0
    assert "Killed (signal 9)" in killed.stdout + killed.stderr
    assert f"--resume continues from {folder}" in killed.stderr
    assert sorted(path.stem for path in folder.glob("*.ratoon"))[-1] == "checkpoint-00000004"

    resumed = run(1, BIN / "ratoon", *together, "--resume")

    assert resumed.returncode == 0, resumed.stderr
    found = json.loads(resumed.stdout)
    expected = json.loads(CliRunner().invoke(app, list(map(str, train))).stdout)
    assert found["epochs"] == 8
    # Two ranks took the first four epochs: the same products, summed in another order.
    assert_allclose(found["loss"], expected["loss"], rtol=1e-5)
