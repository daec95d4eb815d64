import subprocess
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from ratoon import SparseMLPClassifier, load
from ratoon.errors import FormatError
from ratoon.storage import read_document, write_document

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


def test_early_stopping_continues_from_a_file(two_classes, tmp_path):
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


def test_a_file_without_the_optimizer_is_smaller_and_predicts_the_same(two_classes, tmp_path):
    X, y = two_classes
    model = SparseMLPClassifier((20,), solver="adam", density=0.5, max_iter=5, random_state=0)
    for _ in range(3):
        model.partial_fit(X, y)
    model.save(tmp_path / "whole")
    model.save(tmp_path / "small", optimizer=False)
    n_connections = sum(layer.n_connections for layer in model.network_.layers)
    saved = (tmp_path / "whole").stat().st_size - (tmp_path / "small").stat().st_size
    assert saved >= 2 * n_connections * model.network_.dtype.itemsize
    small, whole = load(tmp_path / "small"), load(tmp_path / "whole")
    assert small.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    whole.partial_fit(X, y)
    small.partial_fit(X, y)  # from moments of zero: as well, but not the same
    assert np.isfinite(small.loss_)
    assert small.predict_proba(X).tobytes() != whole.predict_proba(X).tobytes()


def test_a_file_that_makes_no_estimator_is_refused_by_name(two_classes, tmp_path):
    path = tmp_path / "model.ratoon"
    SparseMLPClassifier((5,), max_iter=1, random_state=0).fit(*two_classes).save(path)
    document = read_document(path)
    document.config["parameters"]["n_jobs"] = 3.0
    write_document(document, path)
    with pytest.raises(FormatError, match=r"model\.ratoon: .*n_jobs"):
        load(path)
