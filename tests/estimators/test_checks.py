"""scikit-learn's own checks, all of them: nothing failed, nothing expected to, nothing skipped."""

import json

import pytest

from tests.processes import run_python

# How each is made, transformers as small as the checks allow, and how many checks there are.
ESTIMATORS = {
    "SparseMLPClassifier": ("", 67),
    "SparseMLPRegressor": ("", 60),
    "SparseFeatureSelector": ("n_repeats=2", 45),
    "SparseAutoencoderSelector": ("n_repeats=1, max_iter=5", 45),
    "SparseBernoulliRBM": ("n_components=20, n_iter=3", 45),
}

SCRIPT = """
import json, warnings
import ratoon
from sklearn.utils.estimator_checks import check_estimator
warnings.simplefilter("ignore")
found = {}
for estimator in (%s):
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    found[type(estimator).__name__] = [
        (result["check_name"], result["status"], repr(result["exception"])) for result in results
    ]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    # In a process of its own: SciPy looks at this variable once, when it is imported.
    made = ", ".join(f"ratoon.{name}({how})" for name, (how, _) in ESTIMATORS.items())
    done = run_python(SCRIPT % made, timeout=1200, SCIPY_ARRAY_API="1")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_check_of_scikit_learn_passes(found, name):
    assert [result for result in found[name] if result[1] != "passed"] == []
    assert len(found[name]) >= ESTIMATORS[name][1]
