"""Strengths of features, and starts and growth that follow them."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from ratoon import SparseMLPClassifier, SparseMLPRegressor, load
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.estimators.strengths import strengths
from ratoon.evolution import GuidedSET

INFORMATIVE = slice(0, 5)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((90, 60))
    y = np.arange(90) % 3
    x[:, INFORMATIVE] += 2.0 * (y[:, None] - 1)
    return x, y


def model(**given):
    return SparseMLPClassifier((40,), epsilon=5, max_iter=8, random_state=0, **given)


def share_of_informative(estimator):
    degrees = estimator.network_.layers[0].topology.degrees()[0]
    return degrees[INFORMATIVE].sum() / degrees.sum()


@pytest.mark.parametrize("start", ["f", "mutual_info", "l1"])
def test_first_connections_follow_the_measured_strength(start, data):
    fitted = model(start=start, evolution="static").fit(*data)
    plain = model(evolution="static").fit(*data)
    assert fitted.network_.n_connections == plain.network_.n_connections
    assert share_of_informative(fitted) > 2 * share_of_informative(plain)


def test_strengths_are_given_or_come_from_another_network(data):
    first = model(start=np.eye(60)[0] + 0.01, evolution="static").fit(*data)
    second = model(start=first, evolution="static").fit(*data)
    degrees = [m.network_.layers[0].topology.degrees()[0] for m in (first, second)]
    assert degrees[0].argmax() == degrees[1].argmax() == 0


@pytest.mark.parametrize("measure", ["f", "l1"])
def test_sparse_samples_have_the_strengths_of_dense_ones(measure, data):
    x, y = np.where(np.abs(data[0]) < 1.0, 0.0, data[0]), np.eye(3)[data[1]]
    found = [
        strengths(measure, rows, y, None, has_classes=True)
        for rows in (x, scipy.sparse.csr_array(x))
    ]
    # Those of the lasso are z-scores clipped around the mean or around 0.
    assert_allclose(found[1], found[0], rtol=1e-6 if measure == "f" else 0.05, atol=1e-2)


def test_rows_of_weight_0_do_not_affect_strengths(data):
    x, y = data[0].copy(), np.eye(3)[data[1]]
    weights = np.r_[np.ones(60), np.zeros(30)]
    for measure in ("f", "mutual_info", "l1"):
        kept = strengths(measure, x[:60], y[:60], None, has_classes=True)
        assert_allclose(strengths(measure, x, y, weights, has_classes=True), kept, rtol=1e-6)


def test_growth_is_guided_by_the_training_rows(data):
    guided = model(evolution=GuidedSET(until=1.0)).fit(*data)
    plain = model(evolution=GuidedSET(np.ones(60), until=1.0)).fit(*data)
    assert share_of_informative(guided) > 1.5 * share_of_informative(plain)


def test_a_guided_network_is_saved_and_trained_on(data, tmp_path):
    fitted = model(start="f", evolution=GuidedSET()).fit(*data)
    fitted.save(tmp_path / "model.ratoon")
    again = load(tmp_path / "model.ratoon")
    assert again.evolution == GuidedSET()
    assert_array_equal(again.predict(data[0]), fitted.predict(data[0]))
    again.partial_fit(*data)


def test_a_continuous_target_has_strengths_too():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((80, 50))
    y = x[:, INFORMATIVE].sum(axis=1)
    fitted = SparseMLPRegressor((30,), epsilon=4, start="f", max_iter=2, random_state=0).fit(x, y)
    assert share_of_informative(fitted) > 0.2


def test_invalid_strengths_are_refused(data):
    with pytest.raises(InvalidParameterError, match="'mutual_info'"):
        model(start="anova").fit(*data)
    with pytest.raises(InvalidInputError, match="60 finite numbers"):
        model(start=np.ones(7)).fit(*data)
    with pytest.raises(InvalidParameterError, match="one strength per feature"):
        model(start=3.0).fit(*data)
