"""Schedules, sample weights, class weights, and data of extreme size in every way of fitting."""

import math
import random

import numpy as np
import pytest

import ratoon
from ratoon.errors import RatoonError
from tests.adversary.attacks import only_ratoon_errors, repeat

WEIGHTS = (0, -0.0, -1, 1, 1e-300, 1e300, 1e308, 5e-324, math.nan, math.inf, -math.inf, 10**400)
SIZES = (0.0, 1e-300, 1e-40, 1.0, 1e30, 3e38, 1e300)
FACTORS = (0.0, -1.0, 1.0, math.nan, math.inf, 1e308, 10**400, None, "1", 1j, np.float32(0.5))


def random_data(choose, rng):
    wide = choose.random() < 0.5  # solved in closed form
    shape = (24, 100) if wide else (choose.choice((8, 40)), choose.choice((1, 3, 8)))
    X = rng.normal(size=shape) * choose.choice(SIZES)
    kind = choose.randrange(6)
    if kind == 0:
        X[:] = X[0]  # the same sample
    elif kind == 1:
        X[:] = X[:, :1]  # the same feature
    elif kind == 2:
        X[0, 0] = choose.choice(SIZES)
    elif kind == 3:
        with np.errstate(over="ignore"):
            X *= 10.0 ** rng.uniform(-60, 30, size=shape[1])
    if choose.random() < 0.3:
        with np.errstate(over="ignore"):
            X = X.astype(np.float32)
    return X


def attack(seed):
    choose, rng = random.Random(seed), np.random.default_rng(random.Random(seed).randrange(2**32))
    X, how = random_data(choose, rng), {"random_state": 0}
    n, weights = len(X), None
    if choose.random() < 0.6:
        usual = choose.choice((0, 1, 1e300, 1e-300))
        weights = [choose.choice((*WEIGHTS, usual, usual, usual)) for _ in range(n)]
    if choose.random() < 0.6:
        how |= {"hidden_layer_sizes": (4,), "epsilon": 3, "max_iter": 2}
        how["evolution"] = choose.choice(("set", "rigl", "snfs", "static", "gse"))
        if choose.random() < 0.5:
            factor = choose.choice(FACTORS)
            how["learning_rate"] = lambda progress: factor
    with only_ratoon_errors():
        if choose.random() < 0.5:
            if choose.random() < 0.5:
                how["class_weight"] = {k: choose.choice(WEIGHTS) for k in range(2)}
            model = ratoon.SparseMLPClassifier(**how).fit(X, np.arange(n) % 2, weights)
            assert np.isfinite(model.predict_proba(X)).all()
        else:
            y = rng.normal(size=n) * choose.choice(SIZES)
            model = ratoon.SparseMLPRegressor(**how).fit(X, y, weights)
            assert np.isfinite(model.predict(X)).all()
        assert model.network_.is_finite()


@pytest.mark.parametrize("batch", range(8))
def test_extreme_weights_and_data_work_or_are_refused(batch):
    for seed in range(5):
        attack(f"{batch} {seed}")


@pytest.mark.soak
def test_extreme_weights_and_data_work_or_are_refused_for_long(minutes, say):
    repeat(attack, minutes, say)


@pytest.mark.parametrize("factor", FACTORS)
def test_a_schedule_of_any_value_works_or_is_refused(factor):
    model = ratoon.SparseMLPClassifier((4,), max_iter=2, learning_rate=lambda progress: factor)
    X = np.random.default_rng(0).normal(size=(20, 4))
    is_valid = isinstance(factor, float | np.floating) and 0 <= factor <= 1
    with only_ratoon_errors():
        try:
            model.fit(X, np.arange(20) % 2)
        except RatoonError:
            assert not is_valid
            raise
