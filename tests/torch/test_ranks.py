"""Ranks under torchrun hold the same sparse network after training and rewiring."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import LOOKS_FOR_RACES

pytest.importorskip("torch", reason="torch is not installed")

EXAMPLE = Path(__file__).parents[2] / "examples" / "torch_two_ranks.py"

pytestmark = [
    pytest.mark.slow,  # every rank is a new process
    pytest.mark.skipif(LOOKS_FOR_RACES, reason="finds races between PyTorch's own threads"),
    pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not here"),
]


def topologies(n_ranks):
    """Train on so many ranks; return what they say of their topologies, by strategy."""
    # What torchrun runs, but surely under this Python.
    torchrun = [sys.executable, "-m", "torch.distributed.run"]
    done = subprocess.run(
        [*torchrun, f"--nproc-per-node={n_ranks}", EXAMPLE],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = re.findall(r"(\w+), rank \d of \d: same network everywhere, topology (\w+)", done.stdout)
    assert len(said) == 2 * n_ranks, done.stdout
    return {name: {t for n, t in said if n == name} for name in ("SET", "RigL")}


def test_two_ranks_rewire_as_one_does_also_by_gradients():
    together = topologies(2)
    assert all(len(found) == 1 for found in together.values())
    assert together == topologies(1)
