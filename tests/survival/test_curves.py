"""Kaplan-Meier curves and the log-rank test against lifelines."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

from ratoon.survival import StepFunction, kaplan_meier, log_rank
from ratoon.survival.curves import chi2_tail


def samples(seed, n=60):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 3, n)
    time = np.ceil(rng.exponential(5 + 5 * groups))
    return rng.random(n) < 0.7, time, groups


def test_the_curve_is_the_product_of_its_steps():
    event = np.array([True, True, False, True, False])
    found = kaplan_meier(event, np.array([1.0, 2, 2, 4, 5]))
    assert_allclose(found.survival, [0.8, 0.6, 0.3])
    assert found.at_risk.tolist() == [5, 4, 2]
    assert (found.n_samples, found.n_events, found.median) == (5, 3, 4.0)
    assert_allclose(found.before(np.array([1.0, 2, 3, 9])), [1, 0.8, 0.6, 0.3])


def test_curves_and_limits_agree_with_lifelines():
    lifelines = pytest.importorskip("lifelines", reason="needs lifelines")
    event, time, _ = samples(0)
    found = kaplan_meier(event, time)
    reference = lifelines.KaplanMeierFitter().fit(time, event)
    assert_allclose(found.survival, reference.predict(found.times), rtol=1e-9)
    limits = reference.confidence_interval_.loc[found.times].to_numpy()
    inside = found.survival > 0
    assert_allclose(found.low[inside], limits[inside, 0], rtol=1e-5)
    assert_allclose(found.high[inside], limits[inside, 1], rtol=1e-5)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_the_log_rank_test_agrees_with_lifelines(n_groups):
    statistics = pytest.importorskip("lifelines.statistics", reason="needs lifelines")
    event, time, groups = samples(1)
    groups %= n_groups
    reference = statistics.multivariate_logrank_test(time, groups, event)
    assert_allclose(
        log_rank(event, time, groups), (reference.test_statistic, reference.p_value), rtol=1e-6
    )


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 5, 9])
def test_tails_of_chi_squared_are_those_of_scipy(degrees):
    for value in (0.0, 0.5, 3.0, 20.0):
        assert_allclose(chi2_tail(value, degrees), scipy.stats.chi2.sf(value, degrees), rtol=1e-9)


def test_a_step_function_is_constant_between_its_times():
    curve = StepFunction(np.array([2.0]), np.array([0.5]), 1.0)
    assert curve(1.9) == 1.0
    assert curve([2.0, 3.0]).tolist() == [0.5, 0.5]
