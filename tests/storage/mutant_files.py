"""Good files of every kind, of which mutants are made, and how accepted mutants are used."""

import warnings
from contextlib import suppress

import numpy as np
from sklearn.exceptions import NotFittedError

from ratoon import SparseMLPClassifier, SparseMLPRegressor, SparseMLPSurvival, load
from ratoon.datasets import Dataset, groups_from_pairs
from ratoon.errors import FormatError, RatoonError
from ratoon.estimators.files import to_bytes as file_of
from ratoon.estimators.state import from_state
from ratoon.inference import Predictor
from ratoon.storage.checkpoint import _from_document, _to_document
from ratoon.storage.rules import Violation
from tests.storage.cases import a_document, a_training, patient, to_bytes
from tests.storage.test_mutants import an_estimator_document, use, use_estimator

WIDEST = 100_000
X = np.random.default_rng(0).normal(size=(40, 9))
CLASSES = np.array(["ill", "well", "=1+1"])[np.argmax(X[:, :3], axis=1)]
TIMES = np.c_[np.exp(X[:, 0]), X[:, 1] > -1]
GROUPS = np.repeat(["a", "b", "c", "d"], 10)
HOW = {"epsilon": 3, "max_iter": 3, "random_state": 0}


def a_checkpoint(**how):
    training = a_training(n_epochs=3, stopping=patient(), **how)
    training.run()
    return to_bytes(_to_document(training.state, {"plan": {"seed": "7"}}))


def a_solved(kind, y, n_features=120):
    x = np.random.default_rng(1).normal(size=(40, n_features))
    x[:, :9] = X
    return file_of(kind(random_state=0).fit(x, y))


def with_groups():
    names = [f"f{index}" for index in range(9)]
    pairs = [("f0", "one"), ("f1", "one"), ("f2", "one"), ("f2", "two"), ("f7", "two")]
    groups = groups_from_pairs(pairs, names)
    model = SparseMLPClassifier(topology=groups.within(density=0.7), max_iter=3, random_state=0)
    return file_of(model.fit(Dataset(X, CLASSES, feature_names=tuple(names))))


FILES = {
    "network": lambda: to_bytes(a_document(n_states=2)),
    "several tiles": lambda: to_bytes(a_document(widths=(40, 700), dtype=np.float64, n_states=0)),
    "wide checkpoint": lambda: to_bytes(a_document("checkpoint", widths=(600, 30, 2))),
    "classifier": lambda: to_bytes(an_estimator_document()),
    "checkpoint": lambda: a_checkpoint(),
    "checkpoint of Adam": lambda: a_checkpoint(adam=True),
    "regressor": lambda: file_of(
        SparseMLPRegressor((6,), evolution="snfs", early_stopping=True, **HOW).fit(X, X[:, :2])
    ),
    "labels": lambda: file_of(SparseMLPClassifier((6,), evolution="rigl", **HOW).fit(X, X > 0.5)),
    "survival": lambda: file_of(SparseMLPSurvival((6,), **HOW).fit(X, TIMES)),
    "closed form": lambda: a_solved(SparseMLPClassifier, CLASSES),
    "closed form of numbers": lambda: a_solved(SparseMLPRegressor, X[:, :2]),
    "closed form of survival": lambda: a_solved(SparseMLPSurvival, TIMES),
    "averaged": lambda: file_of(
        SparseMLPClassifier(random_state=0, max_iter=2).fit(np.tile(X, (3, 1)), np.tile(CLASSES, 3))
    ),
    "prepared": lambda: file_of(
        SparseMLPClassifier((6,), prepare="log2,quantile,center_groups", **HOW).fit(
            np.exp(X), CLASSES, groups=GROUPS
        )
    ),
    "groups": with_groups,
    "bfloat16": lambda: file_of(SparseMLPRegressor((6,), dtype="bfloat16", **HOW).fit(X, X[:, 0])),
}


def use_quickly(document):
    """Compute outputs and predict; return false if the content is refused."""
    use(document)
    return use_estimator(document) if "estimator" in document.config else True


def use_thoroughly(document, raw, path):
    """Do everything that can be done with a file, but for what refuses it with an error."""
    use(document)
    path.write_bytes(raw)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with suppress(RatoonError):
            predictor = Predictor.load(path)
            if predictor.n_features <= WIDEST:
                predictor.predict(np.ones((2, predictor.n_features), dtype=np.float32))
        if "identity" in document.config:
            return _resume(document)
        if "estimator" not in document.config:
            return True
        try:
            model = from_state(document.config, document.arrays, document.networks)
        except FormatError:
            return False
        if model.n_features_in_ > WIDEST:
            return True
        x = np.random.default_rng(0).normal(size=(12, model.n_features_in_))
        for step in STEPS:
            with suppress(RatoonError, NotFittedError):  # a diverged fit leaves no network
                step(model, x, path)
    return True


def _resume(document):
    try:
        state, *_ = _from_document(document)
    except (FormatError, Violation):
        return False
    training = a_training(n_epochs=4, stopping=patient())
    same = [layer.shape for layer in training.network.layers]
    if [layer.shape for layer in state.network.layers] == same:
        with suppress(RatoonError):
            training.continue_from(state)
            training.run()
    return True


def _train_on(model, x, path):
    del path
    if isinstance(model, SparseMLPSurvival):
        model.partial_fit(x, np.c_[np.arange(1.0, 13.0), np.arange(12) % 2])
    else:
        model.partial_fit(x, model.predict(x))


STEPS = (
    lambda model, x, path: str(model.report_),
    lambda model, x, path: model.predict(x),
    lambda model, x, path: model.feature_importances_,
    lambda model, x, path: model.ranking_,
    lambda model, x, path: model.explain(x[:2]),
    lambda model, x, path: model.group_activity(x),
    lambda model, x, path: model.card(),
    _train_on,
    lambda model, x, path: model.save(path),
    lambda model, x, path: load(path).predict(x),
)
