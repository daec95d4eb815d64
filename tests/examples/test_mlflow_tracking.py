"""The MLflow example runs as it is, where MLflow is installed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples/mlflow_tracking.py"


@pytest.mark.slow
def test_the_example_logs_and_loads(tmp_path):
    pytest.importorskip("mlflow", reason="MLflow is not installed")
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        cwd=tmp_path,
        env={**os.environ, "MLFLOW_TRACKING_URI": "sqlite:///tracking.db", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,  # against hanging
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = re.search(r"10 epochs logged; accuracy of the loaded model ([\d.]+)", done.stdout)
    assert found, done.stdout
    assert float(found[1]) > 0.85
