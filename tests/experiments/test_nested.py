"""Nested cross-validation chooses inside the training rows, and only there."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier

from ratoon.cli.compare import network_grids, networks
from ratoon.experiments.compare import compare, rivals
from ratoon.experiments.nested import classical_grids, nested


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    return rng.normal(size=(60, 4)) + 2.0 * y[:, None], y


def test_a_method_with_a_grid_finds_the_best_setting(data):
    methods = {"near": lambda seed: KNeighborsClassifier()}
    # An inner fold trains on 40: as many neighbours are the same for every sample.
    chosen = nested(methods, {"near": {"n_neighbors": (3, 40)}})["near"](0).fit(*data)
    assert chosen.best_params_ == {"n_neighbors": 3}


def test_methods_without_a_grid_are_unchanged():
    methods = {"near": lambda seed: KNeighborsClassifier()}
    assert nested(methods, {})["near"] is methods["near"]


class Spy(ClassifierMixin, BaseEstimator):
    """Notes the samples it is fitted on and asked about; each is known by its only feature."""

    seen: list = []  # noqa: RUF012

    def __init__(self, setting=0):
        self.setting = setting

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.seen.append(("fit", frozenset(X[:, 0])))
        return self

    def predict(self, X):
        self.seen.append(("asked", frozenset(X[:, 0])))
        return np.zeros(len(X), dtype=int)


def test_test_rows_are_not_used_to_choose_settings():
    x, y = np.arange(12.0)[:, None], np.arange(12) % 2
    Spy.seen = []
    methods = nested({"spy": lambda seed: Spy()}, {"spy": {"setting": (0, 1)}}, n_inner=2)
    compare(x, y, methods, n_splits=2, n_repeats=1, n_permutations=0)
    # For each of two outer folds: 2 settings x 2 inner folds of fit and question, a last fit on
    # all training rows, and the question that counts.
    assert len(Spy.seen) == 2 * (2 * 2 * 2 + 2)
    for fold in (Spy.seen[:10], Spy.seen[10:]):
        *before, (_, judged) = fold
        assert len(judged) == 6
        assert all(not rows & judged for _, rows in before)


def test_every_grid_fits_its_method(data):
    methods = {**networks(), **rivals(["all"], 4)}
    grids = {**network_grids(), **classical_grids(4)}
    assert set(grids) <= set(methods)
    for name, grid in grids.items():
        assert set(grid) <= set(methods[name](0).get_params()), name
