"""Cox's partial likelihood against its definition, finite differences and scikit-survival."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from ratoon.survival import CoxLoss, baseline_hazard, martingale_residuals


def samples(seed, n=30, distinct=None):
    rng = np.random.default_rng(seed)
    time = rng.exponential(size=n)
    if distinct:
        time = rng.integers(1, distinct + 1, n).astype(float)
    event = rng.random(n) < 0.6
    event[0] = True
    return event, time, rng.normal(size=n), rng.uniform(0.2, 2.0, n)


def by_definition(event, time, eta, weights, ties):
    """Sum over event times, as in the papers."""
    total = 0.0
    risk = weights * np.exp(eta)
    for t in np.unique(time[event]):
        died = event & (time == t)
        at_risk = risk[time >= t].sum()
        total -= (weights * eta)[died].sum()
        mean = weights[died].mean()
        for place in range(died.sum()):
            share = place / died.sum() if ties == "efron" else 0.0
            factor = mean if ties == "efron" else weights[died][place]
            total += factor * np.log(at_risk - share * risk[died].sum())
    return total


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@given(seed=st.integers(0, 10**6), distinct=st.sampled_from([None, 3, 8]))
def test_the_loss_is_that_of_the_papers(ties, seed, distinct):
    event, time, eta, weights = samples(seed, distinct=distinct)
    found, _ = CoxLoss(event, time, weights, ties=ties)(eta)
    assert_allclose(found, by_definition(event, time, eta, weights, ties), rtol=1e-10)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("distinct", [None, 1, 4])
def test_the_gradient_is_that_of_finite_differences(ties, distinct):
    event, time, eta, weights = samples(1, distinct=distinct)
    loss = CoxLoss(event, time, weights, ties=ties)
    _, gradient = loss(eta)
    step = 1e-6
    numeric = [
        (loss(eta + step * unit)[0] - loss(eta - step * unit)[0]) / (2 * step)
        for unit in np.eye(eta.size)
    ]
    assert_allclose(gradient, numeric, atol=1e-7)
    assert_allclose(gradient.sum(), 0, atol=1e-10)  # a constant on all scores changes nothing


def test_scores_of_any_size_give_finite_numbers():
    event, time, eta, weights = samples(2, distinct=5)
    for ties in ("efron", "breslow"):
        value, gradient = CoxLoss(event, time, weights, ties=ties)(1e5 * eta)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()


def test_a_weight_of_two_is_a_sample_twice():
    event, time, eta, _ = samples(3)
    twice = np.repeat(np.arange(30), 1 + (np.arange(30) % 2))
    weights = 1.0 + np.arange(30) % 2
    value, gradient = CoxLoss(event, time, weights, ties="breslow")(eta)
    repeated, parts = CoxLoss(event[twice], time[twice], ties="breslow")(eta[twice])
    assert_allclose(value, repeated)
    assert_allclose(gradient, np.bincount(twice, parts))


def test_samples_of_weight_zero_do_not_count():
    event, time, eta, weights = samples(4)
    weights[5:9] = 0
    kept = np.delete(np.arange(30), range(5, 9))
    value, gradient = CoxLoss(event, time, weights)(eta)
    alone, parts = CoxLoss(event[kept], time[kept], weights[kept])(eta[kept])
    assert_allclose(value, alone)
    assert_allclose(gradient[kept], parts)
    assert not gradient[5:9].any()


def test_without_events_there_is_no_loss():
    value, gradient = CoxLoss(np.zeros(4, bool), np.arange(4.0))(np.ones(4))
    assert value == 0
    assert not gradient.any()


def test_residuals_are_events_minus_expected_events():
    event, time, _, _ = samples(5)
    times, hazard = baseline_hazard(event, time, np.zeros(30), ties="breslow")
    expected = hazard[np.searchsorted(times, time)]
    assert_allclose(martingale_residuals(event, time), event - expected)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_a_fitted_model_and_its_hazard_agree_with_scikit_survival(ties):
    linear_model = pytest.importorskip("sksurv.linear_model", reason="needs scikit-survival")
    event, time, _, _ = samples(6, n=80, distinct=25)
    x = np.random.default_rng(0).normal(size=(80, 3))
    y = np.array(list(zip(event, time, strict=True)), dtype=[("event", bool), ("time", float)])
    reference = linear_model.CoxPHSurvivalAnalysis(ties=ties, alpha=0).fit(x, y)
    _, gradient = CoxLoss(event, time, ties=ties)(x @ reference.coef_)
    assert_allclose(x.T @ gradient, 0, atol=1e-4)  # it is where the gradient vanishes
    if ties == "breslow":  # its hazard is Breslow's for both
        times, hazard = baseline_hazard(event, time, x @ reference.coef_, ties=ties)
        assert_allclose(times, reference.cum_baseline_hazard_.x)
        centred = np.exp(x.mean(axis=0) @ reference.coef_)
        expected = reference.cum_baseline_hazard_.y
        ratio = hazard[expected > 0] / expected[expected > 0]
        assert_allclose(ratio, ratio[0], rtol=1e-6)
        assert ratio[0] == pytest.approx(1, rel=1e-6) or ratio[0] == pytest.approx(1 / centred)
