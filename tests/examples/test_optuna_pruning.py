"""The search with Optuna prunes some trials, finishes others, and finds a network that works."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "optuna_pruning.py"

pytestmark = [
    pytest.mark.skipif(not importlib.util.find_spec("optuna"), reason="Optuna is not installed"),
    pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not here"),
]


def test_some_trials_are_pruned():
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pruned, n_trials, trained, n_epochs = map(
        int, re.search(r"(\d+) of (\d+) trials pruned, (\d+) of (\d+)", done.stdout).groups()
    )
    assert 0 < pruned < n_trials
    assert trained < n_epochs
    # The settings that won, trained as often: guessing gives 0.1.
    assert float(re.search(r"test rows ([\d.]+)", done.stdout)[1]) > 0.8
