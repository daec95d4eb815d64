"""Estimators in several threads of one program: each gives what it gives alone."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon import SparseMLPClassifier, SparseMLPRegressor

N_THREADS = 4


@pytest.fixture
def data(rng):
    X = rng.normal(size=(200, 60)).astype(np.float32)
    return X, X[:, 0] + X[:, 1]


def fitted(data, seed, n_jobs=2):
    X, y = data
    how = {"density": 0.3, "max_iter": 5, "random_state": seed, "n_jobs": n_jobs}
    if seed % 2:
        return SparseMLPRegressor((80, 40), **how).fit(X, y)
    return SparseMLPClassifier((80, 40), **how).fit(X, y > 0)


def test_estimators_fitted_at_the_same_time_are_those_fitted_alone(data, equal_networks):
    alone = [fitted(data, seed, n_jobs=1) for seed in range(N_THREADS)]
    with ThreadPoolExecutor(N_THREADS) as pool:
        together = list(pool.map(lambda seed: fitted(data, seed), range(N_THREADS)))
    for one, other in zip(alone, together, strict=True):
        assert equal_networks(one.network_, other.network_)


def test_one_estimator_predicts_in_many_threads_what_it_predicts_in_one(data):
    model, (X, _) = fitted(data, 0), data
    parts = [X[first : first + 50] for first in range(0, 200, 10)]
    expected = [model.predict_proba(part) for part in parts]
    with ThreadPoolExecutor(N_THREADS) as pool:
        found = list(pool.map(model.predict_proba, parts))
    for one, other in zip(expected, found, strict=True):
        assert_array_equal(one, other)


def test_an_estimator_predicts_the_same_while_others_are_trained(data):
    model, (X, _) = fitted(data, 0), data
    expected = model.predict_proba(X)
    with ThreadPoolExecutor(N_THREADS) as pool:
        trainings = [pool.submit(fitted, data, seed) for seed in range(3)]
        while not all(training.done() for training in trainings):
            assert_array_equal(model.predict_proba(X), expected)
        assert_array_equal(trainings[0].result().predict_proba(X), expected)
