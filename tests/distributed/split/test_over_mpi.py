"""Processes under MPI that each hold a part of one network, through the command line."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from ratoon.cli.app import app
from ratoon.datasets import make_microarray, write
from tests.processes import IS_SANITIZED, LOOKS_FOR_RACES

pytest.importorskip("mpi4py", reason="mpi4py is not installed")

BIN = Path(sys.executable).parent
if not (BIN / "mpiexec").exists():
    pytest.skip("there is no mpiexec next to this Python", allow_module_level=True)

pytestmark = [
    pytest.mark.slow,  # every rank is a new process
    pytest.mark.skipif(LOOKS_FOR_RACES, reason="MPICH crashes at its own end there"),
]

# The command line itself, but rank 1 ends after its third epoch as the first word says.
DYING = """
import os, signal, sys
from ratoon.cli import main
from ratoon.distributed.split import SplitTraining

how, epochs = sys.argv.pop(1), SplitTraining._run_epoch

def run_epoch(training):
    epochs(training)
    if training.network.ranks.rank == 1 and training.epochs_done == 3:
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError("no space left")

SplitTraining._run_epoch = run_epoch
sys.exit(main())
"""


def run(n_ranks, *command):
    return subprocess.run(
        [BIN / "mpiexec", "-n", str(n_ranks), *map(str, command)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("split") / "data.npz"
    write(make_microarray(60, 100, n_informative=20, random_state=0)[0], path)
    return path


def arguments(data, folder, *more):
    common = ["train", data, "--hidden", "40,30", "--epochs", "6", "--batch-size", "10"]
    common += ["--distributed", "mpi", "--split", "neurons", "--checkpoint", folder, "--json"]
    return [*common, "--evolution", "set", "--test", "0.3", *more]


def test_two_and_four_ranks_train_the_network_of_one(data, tmp_path):
    found = []
    for n_ranks in (1, 2, 4):
        folder = tmp_path / str(n_ranks)
        done = run(n_ranks, BIN / "ratoon", *arguments(data, folder, "--parts", "4"))
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        predicted = run(1, BIN / "ratoon", "predict", folder, data, "-p", "--json")
        assert predicted.returncode == 0, predicted.stderr
        rows = [list(row.values())[2:] for row in json.loads(predicted.stdout)]
        found.append((result, np.array(rows, dtype=float)))
    for result, rows in found[1:]:
        # float32 sums in another order
        assert result["loss"] == pytest.approx(found[0][0]["loss"], rel=1e-3)
        assert result["test_score"] == found[0][0]["test_score"]
        assert_allclose(rows, found[0][1], atol=1e-3)


def test_two_groups_of_two_ranks_train_what_two_ranks_train(data, tmp_path):
    losses = []
    for n_ranks, groups in ((2, "1"), (4, "2")):
        folder = tmp_path / groups
        # Momentum SGD is linear in the gradients, so the mean of steps is the step of the mean.
        more = ["--rank-groups", groups, "--parts", "2", "--learning-rate", "0.01"]
        done = run(n_ranks, BIN / "ratoon", *arguments(data, folder, *more))
        assert done.returncode == 0, done.stderr
        losses.append(json.loads(done.stdout)["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


@pytest.mark.parametrize("how", ["kill", "error"])
def test_a_rank_that_fails_ends_the_job_and_another_number_of_ranks_continues(data, tmp_path, how):
    script, folder = tmp_path / "dying.py", tmp_path / "run"
    script.write_text(DYING)
    command = arguments(data, folder, "--parts", "2")
    failed = run(2, sys.executable, script, how, *command)
    assert failed.returncode != 0
    if how == "error":
        assert "no space left" in failed.stdout + failed.stderr
    again = run(1, BIN / "ratoon", *command, "--resume")
    assert again.returncode == 0, again.stderr
    whole = run(1, BIN / "ratoon", *arguments(data, tmp_path / "whole", "--parts", "2"))
    one, other = (json.loads(done.stdout) for done in (again, whole))
    assert one["epochs"] == other["epochs"] == 6
    assert one["loss"] == pytest.approx(other["loss"], rel=1e-3)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (["-o", "x.ratoon"], "--output"),
        (["--early-stopping"], "--early-stopping"),
        (["--evolution", "snfs"], "SNFS"),
        (["--rank-groups", "2"], "cannot be divided"),
        (["--split", "layers"], "--split must be"),
    ],
)
def test_options_that_do_not_fit_are_refused(data, tmp_path, more, named):
    command = [*arguments(data, tmp_path / "refused"), *more]
    done = CliRunner().invoke(app, list(map(str, command)))
    assert done.exit_code in (1, 2), done.stdout
    assert named in done.stderr + done.stdout


# A rank that may use 300 MB more than it has after its imports; the network takes 410 MB.
CAPPED = """
import resource
import numpy as np
from ratoon.distributed import MPICommunicator
from ratoon.distributed.split import SplitNetwork, SplitTraining
from ratoon.optimizers import SGD
from ratoon.training import TrainingPlan

x = np.random.default_rng(0).normal(size=(4, 50)).astype(np.float32)
y, plan = np.eye(2, dtype=np.float32)[[0, 1, 0, 1]], TrainingPlan(batch_size=1, n_epochs=1)

def train(width, ranks):
    network = SplitNetwork.start((50, width, width, 2), ranks.size, ranks, epsilon=60, seed=0)
    training = SplitTraining(network, x, y, plan)
    training.run()
    return training.history.column("n_connections")[0]

ranks = MPICommunicator()
train(100, ranks)
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 300_000_000,) * 2)
print("connections:", train(200_000, ranks))
"""


@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer reserves address space")
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_two_ranks_hold_a_network_that_neither_could_hold_alone(tmp_path):
    script = tmp_path / "capped.py"
    script.write_text(CAPPED)
    alone = run(1, sys.executable, script)
    assert alone.returncode != 0
    assert "NotEnoughMemoryError" in alone.stderr
    together = run(2, sys.executable, script)
    assert together.returncode == 0, together.stderr
    assert "connections: 34400000" in together.stdout  # the last layer is full
