import subprocess
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from ratoon import SparseMLPClassifier, load
from ratoon.errors import FormatError

GO_ON = """
import sys
import numpy as np
import ratoon
model = ratoon.load(sys.argv[1])
with np.load(sys.argv[2]) as data:
    for _ in range(3):
        model.partial_fit(data["X"], data["y"])
model.save(sys.argv[3])
"""


def test_three_epochs_and_three_in_another_process_are_six(two_classes, tmp_path):
    X, y = two_classes
    np.savez(tmp_path / "data.npz", X=X, y=y)
    parameters = {"density": 0.3, "max_iter": 6, "random_state": 0, "dropout": 0.2}
    whole = SparseMLPClassifier((20,), **parameters).fit(X, y)
    half = SparseMLPClassifier((20,), **parameters)
    for _ in range(3):
        half.partial_fit(X, y)
    half.save(tmp_path / "half")
    command = [sys.executable, "-c", GO_ON, tmp_path / "half", tmp_path / "data.npz"]
    subprocess.run([*command, tmp_path / "whole"], check=True)

    found = load(tmp_path / "whole")
    for mine, theirs in zip(whole.network_.layers, found.network_.layers, strict=True):
        assert mine.topology == theirs.topology
        assert mine.weights.tobytes() == theirs.weights.tobytes()
        assert mine.state[0].tobytes() == theirs.state[0].tobytes()
    assert found.loss_curve_ == whole.loss_curve_


def test_early_stopping_goes_on_from_a_file(two_classes, tmp_path):
    X, y = two_classes
    eval_set = (X[:20], y[:20])
    model = SparseMLPClassifier((20,), early_stopping=True, max_iter=20, random_state=0)
    for _ in range(4):
        model.partial_fit(X, y, eval_set=eval_set)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for estimator in (model, again):
        estimator.partial_fit(X, y, eval_set=eval_set)
    assert again.best_iteration_ == model.best_iteration_
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_only_fitted_estimators_can_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        SparseMLPClassifier().save(tmp_path / "model")


def test_a_truncated_file_is_refused(two_classes, tmp_path):
    path = tmp_path / "model"
    SparseMLPClassifier((5,), max_iter=1).fit(*two_classes).save(path)
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(FormatError):
        load(path)
