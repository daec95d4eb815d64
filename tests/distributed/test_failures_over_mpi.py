"""Processes under MPI end within seconds, with a message, if one of them fails or differs."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ratoon.datasets import make_microarray, write
from tests.processes import LOOKS_FOR_RACES

pytest.importorskip("mpi4py", reason="mpi4py is not installed")

BIN = Path(sys.executable).parent
if not (BIN / "mpiexec").exists():
    pytest.skip("there is no mpiexec beside this Python", allow_module_level=True)

pytestmark = [
    pytest.mark.slow,  # every rank is a new process
    pytest.mark.skipif(LOOKS_FOR_RACES, reason="MPICH crashes at its own end there"),
]

RANK = Path(__file__).with_name("failing_rank.py")
LIMIT = 60  # seconds, most of them for imports; a rank that waits would wait forever


def run(n_ranks, *command):
    """Return the exit code and the output; kill the ranks that are left after the limit."""
    started = subprocess.Popen(
        [BIN / "mpiexec", "-n", str(n_ranks), *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = started.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        for number in (signal.SIGTERM, signal.SIGKILL):
            os.killpg(started.pid, number)
            try:
                started.communicate(timeout=10)
                break
            except subprocess.TimeoutExpired:
                continue
        pytest.fail(f"the ranks had not ended after {LIMIT} s")
    return started.returncode, output


def outcomes(n_ranks, case, folder):
    status, output = run(n_ranks, sys.executable, RANK, case, folder)
    found = [folder / f"{rank}.txt" for rank in range(n_ranks)]
    return status, output, [path.read_text() if path.exists() else None for path in found]


@pytest.mark.parametrize("n_ranks", [2, 4])
@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("error", "RuntimeError: out of memory"),
        ("exit", "SystemExit: 143"),
        ("uncaught", "FileNotFoundError: no data.npz"),
        ("sys.exit", "the process ended before the training"),
        ("invalid", "InvalidInputError: Input X contains NaN"),
        ("retry", "RuntimeError: out of memory"),
    ],
)
def test_an_error_on_one_rank_ends_the_others_with_its_message(n_ranks, case, message, tmp_path):
    status, output, found = outcomes(n_ranks, case, tmp_path)
    assert status != 0
    assert f"rank 1 of {n_ranks} failed: {message}" in output
    last = f"rank 1 of {n_ranks} has ended" if case == "retry" else message
    for rank, outcome in enumerate(found):
        if rank != 1:
            assert outcome.startswith("RankFailedError: "), outcome
            assert last in outcome or message in outcome


@pytest.mark.parametrize("n_ranks", [2, 4])
@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("samples", r"data.n_samples: 60 on ranks? [023, ]+, 53 on rank 1"),
        ("values", r"data.samples: hash \w{8} on ranks? [023, ]+, hash \w{8} on rank 1"),
        ("targets", r"data.targets: hash \w{8} on ranks? [023, ]+, hash \w{8} on rank 1"),
        (
            "widths",
            r"network.widths: \[20, 12, 3\] on ranks? [023, ]+, \[20, 13, 3\] on rank 1",
        ),
        ("average_every", r"settings.average_every: None on ranks? [023, ]+, 2 on rank 1"),
        ("max_iter", r"plan.n_epochs: 5 on ranks? [023, ]+, 6 on rank 1"),
        ("random_state", r"plan.seed: 0 on ranks? [023, ]+, 1 on rank 1"),
        ("batch_size", r"plan.batch_size: 60 on ranks? [023, ]+, 7 on rank 1"),
    ],
)
def test_ranks_that_differ_all_raise_what_differs(n_ranks, case, message, tmp_path):
    status, _, found = outcomes(n_ranks, case, tmp_path)
    assert status == 1
    assert len(set(found)) == 1
    assert found[0].startswith("InvalidParameterError: the ranks would not train the same network")
    assert re.search(message, found[0]), found[0]


@pytest.mark.parametrize("n_ranks", [2, 4])
def test_one_rank_stops_all(n_ranks, tmp_path):
    status, output, found = outcomes(n_ranks, "stop", tmp_path)
    assert status == 0, output
    assert found == ["2 epochs"] * n_ranks


@pytest.mark.parametrize("n_ranks", [2, 4])
def test_divergence_on_one_rank_ends_all(n_ranks, tmp_path):
    status, _, found = outcomes(n_ranks, "nan", tmp_path)
    assert status == 1
    assert all("training diverged" in outcome for outcome in found), found


@pytest.mark.parametrize("n_ranks", [2, 4])
def test_ctrl_c_on_one_rank_ends_all(n_ranks, tmp_path):
    status, output, _ = outcomes(n_ranks, "ctrl-c", tmp_path)
    assert status != 0
    assert "KeyboardInterrupt" in output


def test_an_error_after_the_training_ends_all(tmp_path):
    status, _, found = outcomes(2, "afterwards", tmp_path)
    assert status == 1
    assert found == ["5 epochs", "RuntimeError: no space left"]


def test_the_command_prints_one_message_for_all_ranks(tmp_path):
    data, dying = tmp_path / "data.npz", tmp_path / "dying.py"
    write(make_microarray(40, 30, n_informative=20, random_state=0)[0], data)
    dying.write_text(
        "import ratoon.distributed\n"
        "from ratoon.cli import main\n"
        "from ratoon.errors import RatoonError\n"
        "class Failing(ratoon.distributed.DataParallel):\n"
        "    def on_epoch_end(self, training, record):\n"
        "        if self.communicator.rank == 1:\n"
        "            raise RatoonError('out of cheese')\n"
        "ratoon.distributed.DataParallel = Failing\n"
        "raise SystemExit(main())\n"
    )
    train = ["train", data, "--hidden", "9", "--epochs", "3", "--distributed", "mpi", "--quiet"]
    status, output = run(2, sys.executable, dying, *train)
    assert status == 1
    assert output.split("ratoon: ")[1:] == ["rank 1 of 2 failed: RatoonError: out of cheese\n"]


def test_the_command_names_what_differs_between_ranks(tmp_path):
    data = tmp_path / "data.npz"
    write(make_microarray(40, 30, n_informative=20, random_state=0)[0], data)
    command = tmp_path / "seed_of_rank.py"
    command.write_text(
        "import sys\n"
        "from mpi4py import MPI\n"
        "from ratoon.cli import main\n"
        "raise SystemExit(main([*sys.argv[1:], '--seed', str(MPI.COMM_WORLD.rank)]))\n"
    )
    train = ["train", data, "--hidden", "9", "--epochs", "3", "--distributed", "mpi", "--quiet"]
    status, output = run(2, sys.executable, command, *train)
    assert status == 1
    assert output.count("plan.seed: 0 on rank 0, 1 on rank 1") == 1, output
