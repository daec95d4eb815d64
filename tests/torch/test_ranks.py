"""Two ranks under torchrun hold the same sparse network after training and rewiring."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")

EXAMPLE = Path(__file__).parents[2] / "examples" / "torch_two_ranks.py"


def test_two_ranks_rewire_alike():
    done = subprocess.run(
        [Path(sys.executable).parent / "torchrun", "--nproc-per-node=2", EXAMPLE],
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("same network on all ranks") == 2
