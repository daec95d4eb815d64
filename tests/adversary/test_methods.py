"""Arguments of methods with values of any type: they work, or an error explains the refusal."""

import random

import numpy as np
import pytest

import ratoon
from ratoon.datasets import make_microarray
from ratoon.export import to_onnx
from tests.adversary.attacks import VALUES, only_ratoon_errors, repeat
from tests.adversary.test_parameters import X, Y


def classifier(**how):
    return ratoon.SparseMLPClassifier((4,), epsilon=2, max_iter=2, random_state=0, **how)


MODEL = classifier().fit(X, Y > 0)
MADE = {"n_samples": 20, "n_features": 30, "n_informative": 5}


def make(**values):
    sizes = [value for value in values.values() if isinstance(value, int) and value > 10**4]
    return None if sizes else make_microarray(**{**MADE, **values})


USES = {
    "plan features": lambda value: MODEL.plan(value),
    "plan samples": lambda value: MODEL.plan(10, n_samples=value),
    "plan outputs": lambda value: MODEL.plan(10, n_outputs=value),
    "explain rows": lambda value: MODEL.explain(X, rows=value),
    "explain target": lambda value: MODEL.explain(X, target=value),
    "explain method": lambda value: MODEL.explain(X, method=value, n_steps=value),
    "top": lambda value: MODEL.ranking_.top(value),
    "card title": lambda value: MODEL.card(title=value, notes=value),
    "card test": lambda value: MODEL.card(test=value),
    "made samples": lambda value: make(n_samples=value),
    "made features": lambda value: make(n_features=value),
    "made classes": lambda value: make(n_classes=value),
    "made informative": lambda value: make(n_informative=value),
    "augment": lambda value: ratoon.Augment(shift=value),
    "prepare": lambda value: classifier(prepare=value).fit(X, Y > 0),
    "groups": lambda value: classifier().fit(X, Y > 0, groups=value),
    "onnx": lambda value: to_onnx(MODEL, weights=value),
}


def attack(seed, use):
    value = random.Random(seed).choice(VALUES)
    if use == "onnx":
        pytest.importorskip("onnx")
    with only_ratoon_errors(), np.errstate(all="ignore"):
        USES[use](value)


@pytest.mark.parametrize("use", USES)
def test_an_argument_of_any_type_works_or_is_refused(use):
    for value in VALUES:
        with only_ratoon_errors():
            USES[use](value)


@pytest.mark.soak
def test_arguments_of_any_type_work_or_are_refused_for_long(minutes, say):
    repeat(lambda seed: attack(seed, list(USES)[seed % len(USES)]), minutes, say)
