"""The shap package takes models of ratoon, and its values agree with `explain`."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ratoon import SparseMLPClassifier, SparseMLPRegressor

shap = pytest.importorskip("shap", reason="the optional package shap is not installed")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 5))
Y = X[:, 0] - 2 * np.abs(X[:, 1]) + X[:, 2] * X[:, 3]
MEAN = X.mean(axis=0, keepdims=True)

pytestmark = pytest.mark.filterwarnings("ignore")  # of the package, about itself


def exact(function):
    return shap.explainers.Exact(function, shap.maskers.Independent(MEAN))(X[:20])


def test_contributions_of_a_linear_network_are_shapley_values():
    how = {"activation": "identity", "clip": 0.0, "max_iter": 20, "dtype": "float64"}
    model = SparseMLPRegressor((8,), density=0.7, random_state=0, **how).fit(X, Y)
    found = exact(model.predict)
    assert_allclose(model.explain(X[:20]).values, found.values, atol=1e-8)
    assert_allclose(model.explain(X[:20]).base_values, found.base_values, atol=1e-8)


def test_contributions_of_a_network_are_close_to_shapley_values():
    how = {"max_iter": 60, "dtype": "float64", "random_state": 0}
    model = SparseMLPRegressor((30,), density=0.7, **how).fit(X, Y)
    ours, theirs = model.explain(X[:20]).values, exact(model.predict).values
    # Two ways to divide the same sum: equal for linear networks, similar for others.
    assert_allclose(ours.sum(axis=1), theirs.sum(axis=1), atol=1e-8)
    assert np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] > 0.95


def test_an_explainer_takes_a_model_and_its_methods():
    model = SparseMLPClassifier((20,), max_iter=20, random_state=0)
    model.fit(X, np.where(Y > 0, "ill", "well"))
    for function in (model, model.predict_proba):
        found = shap.Explainer(function, X)(X[:3])
        assert found.values.shape == (3, 5, 2)
        total = found.values.sum(axis=1) + found.base_values
        assert_allclose(total, model.predict_proba(X[:3]), atol=1e-6)
    regressor = SparseMLPRegressor((20,), max_iter=20, random_state=0).fit(X, Y)
    found = shap.Explainer(regressor, X)(X[:3])
    assert_allclose(
        found.values.sum(axis=1) + found.base_values, regressor.predict(X[:3]), atol=1e-5
    )


def test_an_explanation_becomes_one_of_the_package():
    model = SparseMLPRegressor((20,), max_iter=20, random_state=0).fit(X, Y)
    found = model.explain(X)
    theirs = found.to_shap()
    assert_allclose(theirs.values, found.values)
    assert theirs.feature_names[0] == "feature 0"
