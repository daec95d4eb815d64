"""Ray, where it is installed: fits of joblib on its workers, and the example of Ray Tune."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.model_selection import cross_val_score

from ratoon import SparseMLPClassifier

SCRIPT = Path(__file__).parents[2] / "examples/ray_tune.py"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_cross_validation_on_ray_gives_the_scores_of_one_process():
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    from ray.util.joblib import register_ray

    register_ray()
    x = np.random.default_rng(0).normal(size=(60, 5))
    model = SparseMLPClassifier((10,), density=0.5, max_iter=3, random_state=0)
    expected = cross_val_score(model, x, x[:, 0] > 0, cv=3)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with parallel_config(backend="ray", n_jobs=2):
            found = cross_val_score(model, x, x[:, 0] > 0, cv=3)
    finally:
        ray.shutdown()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_the_example_of_ray_tune_runs(tmp_path):
    pytest.importorskip("ray.tune", reason="Ray Tune is not installed")
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=900,  # against hanging
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert float(re.search(r"accuracy on test rows ([\d.]+)", done.stdout)[1]) > 0.85
