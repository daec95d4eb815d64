"""scikit-learn's own checks, all of them: nothing failed, nothing expected to, nothing skipped."""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import json, sys, warnings
import ratoon
from sklearn.utils.estimator_checks import check_estimator
warnings.simplefilter("ignore")
estimator = getattr(ratoon, sys.argv[1])()
results = check_estimator(estimator, on_skip=None, on_fail=None)
print(json.dumps([(r["check_name"], r["status"], repr(r["exception"])) for r in results]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "at_least"), [("SparseMLPClassifier", 67), ("SparseMLPRegressor", 60)]
)
def test_every_check_of_scikit_learn_passes(name, at_least):
    # In a process of its own: SciPy looks at this variable once, when it is imported.
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, name],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    results = json.loads(found.stdout.splitlines()[-1])
    assert [result for result in results if result[1] != "passed"] == []
    assert len(results) >= at_least
