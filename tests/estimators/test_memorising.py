import warnings

import numpy as np
import pytest

from ratoon import SparseMLPClassifier
from ratoon.estimators.memorising import MemorisationWarning

LONG = {"hidden_layer_sizes": (100,), "density": 1.0, "max_iter": 500, "solver": "adam",
        "learning_rate_init": 0.01, "random_state": 0}  # fmt: skip


def noise(n):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 30)), rng.integers(0, 2, n)


def test_a_rising_validation_loss_with_a_training_loss_of_zero_is_reported():
    x, y = noise(120)
    with pytest.warns(MemorisationWarning, match=r"validation loss has risen from 0\.\d+ to \d"):
        SparseMLPClassifier(**LONG).fit(x[:80], y[:80], eval_set=(x[80:], y[80:]))


FEWER = {**LONG, "max_iter": 100}
KINDS = {
    "classes": SparseMLPClassifier(**FEWER),
    "kept last epoch": SparseMLPClassifier(
        **FEWER, early_stopping=True, restore_best=False, n_iter_no_change=200
    ),
    "warm start": SparseMLPClassifier(**FEWER, warm_start=True),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_small_training_loss_counts_where_the_validation_loss_is_large(kind):
    x, y = noise(120)
    model = KINDS[kind]
    if model.warm_start:
        model.set_params(max_iter=10).fit(x[:80], y[:80], eval_set=(x[80:], y[80:]))
        model.set_params(max_iter=100)
    with pytest.warns(MemorisationWarning, match="validation loss has risen"):
        model.fit(x[:80], y[:80], eval_set=(x[80:], y[80:]))
    assert 1e-4 < model.history_[-1].loss < 1e-2


def test_the_best_epoch_of_early_stopping_is_no_reason_to_warn():
    x, y = noise(120)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseMLPClassifier(**LONG, early_stopping=True).fit(x, y)


def test_few_samples_without_validation_data_are_no_reason_to_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseMLPClassifier(**LONG).fit(*noise(80))


def test_many_samples_that_are_memorised_are_reported():
    x, y = noise(1000)
    y = (x[:, 0] > 0).astype(int)  # separable: the loss falls fast
    with pytest.warns(MemorisationWarning, match="no validation data show"):
        SparseMLPClassifier(**{**LONG, "batch_size": 32, "max_iter": 100}).fit(x, y)
