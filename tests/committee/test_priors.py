"""Strength of features, alone and in pairs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_selection import f_classif, f_regression

from ratoon.committee.priors import f_statistic, pair_strength


@pytest.mark.parametrize("n_classes", [2, 3, 9])
def test_the_f_of_classes_equals_that_of_scikit_learn(make_classes, n_classes):
    problem = make_classes(n_samples=90, n_classes=n_classes)
    z = problem.x.astype(np.float64)
    expected = np.clip(f_classif(z, problem.groups)[0], 1e-6, 1e4)
    np.testing.assert_allclose(
        f_statistic(z, problem.targets, problem.weights), expected, rtol=1e-6
    )


def test_the_f_of_a_continuous_target_equals_that_of_scikit_learn(make_continuous):
    problem = make_continuous()
    z = problem.x.astype(np.float64)
    expected = np.clip(f_regression(z, problem.targets[:, 0])[0], 1e-6, 1e4)
    np.testing.assert_allclose(
        f_statistic(z, problem.targets, problem.weights), expected, rtol=1e-6
    )


def test_strengths_treat_weights_as_repetitions(make_classes, repeat):
    problem = make_classes(n_samples=40, n_classes=3)
    counts = np.arange(40) % 3 + 1
    many = repeat(problem, counts)
    for strength in (f_statistic, pair_strength):
        np.testing.assert_allclose(
            strength(problem.x.astype(np.float64), problem.targets, counts.astype(float)),
            strength(many.x.astype(np.float64), many.targets, many.weights),
            rtol=1e-3,
            atol=1e-6,
        )


def test_the_f_of_a_perfect_feature_is_limited():
    y = np.repeat([[1.0, -1.0], [-1.0, 1.0]], 10, axis=0)
    z = np.hstack((y[:, :1], np.zeros((20, 1))))
    assert f_statistic(z, y, np.ones(20)).tolist() == [1e4, 1e-6]


def test_pair_strength_finds_an_exclusive_or_that_f_does_not():
    rng = np.random.default_rng(0)
    z = rng.standard_normal((400, 60)).astype(np.float32)
    hit = z[:, 4] * z[:, 31] > 0
    y = 2.0 * np.stack((hit, ~hit), axis=1) - 1.0
    found = np.flatnonzero(pair_strength(z, y, np.ones(400)))
    assert found.tolist() == [4, 31]
    assert f_statistic(z, y, np.ones(400))[[4, 31]].max() < 5


@pytest.mark.parametrize("seed", range(5))
def test_pair_strength_is_almost_0_for_noise(seed):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((300, 50)).astype(np.float32)
    noise = pair_strength(z, rng.choice([-1.0, 1.0], size=(300, 1)), np.ones(300))
    signal = pair_strength(z, np.sign(z[:, [3]] * z[:, [7]]), np.ones(300))
    # The threshold is the expected maximum over all pairs, which is sometimes exceeded slightly.
    assert np.count_nonzero(noise) <= 4
    assert noise.max() < 0.1 * signal[[3, 7]].min()


def test_pair_strength_does_not_depend_on_the_block_size(monkeypatch):
    rng = np.random.default_rng(0)
    z = rng.standard_normal((200, 40)).astype(np.float32)
    y = np.sign(z[:, [1]] * z[:, [30]])
    whole = pair_strength(z, y, np.ones(200))
    monkeypatch.setattr("ratoon.committee.priors._BLOCK_SIZE", 7)
    np.testing.assert_allclose(pair_strength(z, y, np.ones(200)), whole, rtol=1e-4)
