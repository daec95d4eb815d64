"""Estimators in files of every released format version: each loads for ever, and predicts the same.

As in `test_compatibility`, all numbers are small multiples of powers of two, so that raw outputs
are exact on any processor.
"""

from pathlib import Path

import numpy as np
import pytest

from ratoon import SparseMLPClassifier, SparseMLPRegressor, load
from ratoon.estimators.state import from_state, to_state
from ratoon.evolution import SET
from ratoon.kernels import available_isas, use_isa
from ratoon.optimizers import SGD
from tests.storage.cases import same_network
from tests.storage.test_compatibility import OUTPUTS, SAMPLES, the_document

FIXTURES = Path(__file__).parent / "fixtures"
X = np.array(SAMPLES)
LABELS = np.array(["lung", "ébène"])


def with_the_network(fitted):
    """Exchange what was learnt by numbers that can be written down."""
    config, arrays, _ = to_state(fitted)
    config["progress"]["rewired"] = [3, 0]
    if "target_mean" in arrays:
        arrays["target_mean"], arrays["target_std"] = np.array([1.0, -2.0]), np.array([4.0, 0.5])
    return from_state(config, arrays, the_document().networks)


def a_classifier():
    how = {"solver": SGD(momentum=0.5), "evolution": SET(zeta=0.25), "random_state": 2**60 + 1}
    model = SparseMLPClassifier((3,), density=0.5, dtype="float32", max_iter=5, **how)
    for _ in range(2):
        model.partial_fit(X, LABELS[[0, 1, 1, 0]], classes=LABELS)
    return with_the_network(model)


def a_regressor():
    model = SparseMLPRegressor((3,), density=0.5, dtype="float32", max_iter=5, random_state=7)
    for _ in range(2):
        model.partial_fit(X, X[:, :2])
    return with_the_network(model)


MADE = {"classifier": a_classifier, "regressor": a_regressor}
PREDICTED = {
    "classifier": ["lung", "lung", "ébène", "lung"],
    "regressor": (np.array(OUTPUTS) * [4.0, 0.5] + [1.0, -2.0]).tolist(),
}


FILES = sorted(path for kind in MADE for path in FIXTURES.glob(f"{kind}-version-*.ratoon"))


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def kept(request):
    return request.param.stem.split("-")[0], load(request.param)


def test_an_old_estimator_predicts_the_same_to_the_bit(kept):
    kind, model = kept
    for name in available_isas():
        with use_isa(name):
            assert model.predict(X).tolist() == PREDICTED[kind], name


def test_an_old_estimator_keeps_all_its_content(kept):
    kind, model = kept
    expected = MADE[kind]()
    assert model.get_params() == expected.get_params()
    assert same_network(model.network_, expected.network_)
    assert model.n_iter_ == 2
    assert model._state.seed == expected._state.seed
    assert model._state.rewired_by_layer == [3, 0]


def test_an_old_estimator_trains_on(kept):
    kind, model = kept
    y = LABELS[[0, 1, 1, 0]] if kind == "classifier" else X[:, :2]
    assert model.partial_fit(X, y).n_iter_ == 3
    assert np.isfinite(model.loss_)


def test_there_are_files_of_version_1():
    names = {path.stem for path in FIXTURES.glob("*-version-1.ratoon")}
    assert names == {"model-version-1", *(f"{kind}-version-1" for kind in MADE)}
