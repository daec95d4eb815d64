"""Ranks under torchrun have the same sparse network after training and rewiring."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import LOOKS_FOR_RACES

pytest.importorskip("torch", reason="torch is not installed")

EXAMPLE = Path(__file__).parents[2] / "examples" / "torch_two_ranks.py"
STRATEGIES = ("SET", "RigL")

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
    said = re.findall(r"(\w+), rank \d of \d: topology (\w+), weights (\w+)", done.stdout)
    assert len(said) == 2 * n_ranks, done.stdout
    networks = {
        name: {said_of[1:] for said_of in said if said_of[0] == name} for name in STRATEGIES
    }
    assert all(len(found) == 1 for found in networks.values()), "ranks must hold the same network"
    return {name: topology for name, [(topology, _)] in networks.items()}


def test_two_ranks_rewire_as_one_does_also_by_gradients():
    assert topologies(2) == topologies(1)
