"""Every parameter with values of any type and size: it works, or an error explains the refusal."""

import contextlib
import inspect
import io
import random

import numpy as np
import pytest

import ratoon
from ratoon.errors import RatoonError
from ratoon.evolution import STRATEGIES
from ratoon.optimizers import OPTIMIZERS
from tests.adversary.attacks import HUGE, VALUES, only_ratoon_errors, repeat

X = np.random.default_rng(0).normal(size=(24, 6))
Y = X[:, 0]
ESTIMATORS = {name: getattr(ratoon, name) for name in ratoon.__all__ if name.startswith("Sparse")}
QUICK = {
    "hidden_layer_sizes": (4,),
    "epsilon": 2.0,
    "max_iter": 2,
    "n_iter": 2,
    "n_repeats": 1,
    "batch_size": 8,
    "random_state": 0,
}
LONG_RUNS = ("max_iter", "n_iter", "n_repeats", "n_gibbs")
"""Parameters for which a huge value is a valid request for a very long training."""


def is_long_run(name, value):
    return name in LONG_RUNS and isinstance(value, int) and 100 < value <= 10**15


def targets_of(estimator):
    name = type(estimator).__name__
    if "Survival" in name:
        return np.c_[np.exp(Y), Y > -1]
    return Y if "Regressor" in name else Y > 0


def use(estimator, path):
    y = targets_of(estimator)
    estimator.fit(X, y)
    for method in ("predict", "transform"):
        if hasattr(estimator, method):
            getattr(estimator, method)(X)
    if hasattr(estimator, "save"):
        estimator.partial_fit(X, y).save(path)
        ratoon.load(path).predict(X)


def try_parameters(kind, values, path):
    known = kind().get_params()
    given = {name: value for name, value in QUICK.items() if name in known}
    with (
        only_ratoon_errors(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        use(kind(**{**given, **values}), path)


@pytest.mark.parametrize(
    ("kind", "name"),
    [(kind, name) for kind, make in ESTIMATORS.items() for name in make().get_params()],
)
def test_a_parameter_of_any_type_works_or_is_refused(tmp_path, kind, name):
    choose = random.Random(f"{kind} {name}")
    for value in (None, "auto", 10**400, *choose.sample(VALUES, 5)):
        if not is_long_run(name, value):
            try_parameters(ESTIMATORS[kind], {name: value}, tmp_path / "model")


def attack(seed, path):
    choose = random.Random(seed)
    kind = choose.choice(list(ESTIMATORS.values()))
    names = choose.sample(list(kind().get_params()), choose.randint(1, 3))
    values = {name: choose.choice(VALUES) for name in names}
    if not any(is_long_run(name, value) for name, value in values.items()):
        try_parameters(kind, values, path)


@pytest.mark.soak
def test_parameters_of_any_type_work_or_are_refused_for_long(tmp_path, minutes, say):
    repeat(lambda seed: attack(seed, tmp_path / "model"), minutes, say)


PARTS = {
    **{f"evolution={name}": ("evolution", kind) for name, kind in STRATEGIES.items()},
    **{f"solver={name}": ("solver", kind) for name, kind in OPTIMIZERS.items()},
}


@pytest.mark.parametrize("part", PARTS)
def test_a_parameter_of_a_strategy_or_optimizer_works_or_is_refused(tmp_path, part):
    where, kind = PARTS[part]
    choose = random.Random(part)
    for name in inspect.signature(kind).parameters:
        for value in (None, "x", choose.choice(HUGE), *choose.sample(VALUES, 3)):
            with only_ratoon_errors():
                try:
                    made = kind(**{name: value})
                except RatoonError:
                    continue
                try_parameters(ratoon.SparseMLPClassifier, {where: made}, tmp_path / "model")
