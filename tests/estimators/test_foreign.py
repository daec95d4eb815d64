"""Parameters of other libraries: every hint names parameters that exist."""

import re

import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import ratoon
from ratoon import SparseMLPClassifier, SparseMLPRegressor
from ratoon.errors import InvalidParameterError
from ratoon.estimators.foreign import FOREIGN, UnknownParameterError


@pytest.mark.parametrize("kind", [SparseMLPClassifier, SparseMLPRegressor])
def test_no_parameter_of_ours_is_called_foreign(kind):
    assert not FOREIGN.keys() & kind().get_params().keys()


def test_every_hint_names_a_parameter_or_a_function_that_exists():
    known = SparseMLPClassifier().get_params().keys()
    for name, hint in FOREIGN.items():
        first = re.match(r"`(\w[\w.]*)", hint)[1]
        exists = first in known or first == "fit" or hasattr(ratoon, first.removeprefix("ratoon."))
        assert exists, name


@pytest.mark.parametrize("kind", [SparseMLPClassifier, SparseMLPRegressor])
def test_a_foreign_name_is_refused_with_the_right_one(kind):
    with pytest.raises(TypeError, match=r"no parameter `alpha`.*\n.*`weight_decay`"):
        kind(alpha=0.1)
    with pytest.raises(UnknownParameterError, match="`learning_rate_init`"):
        kind().set_params(lr=0.1)


def test_other_unknown_names_are_refused_as_usual():
    with pytest.raises(TypeError, match="no_such"):
        SparseMLPClassifier(no_such=1)
    with pytest.raises(ValueError, match="no_such"):
        SparseMLPClassifier().set_params(no_such=1)


def test_a_number_as_schedule_points_to_the_learning_rate(two_classes):
    model = SparseMLPClassifier(learning_rate=0.01)
    with pytest.raises(InvalidParameterError, match=r"learning_rate_init=0.01"):
        model.fit(*two_classes)


def test_cloning_and_searching_work_as_before(two_classes):
    model = SparseMLPClassifier((5,), max_iter=2)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(max_iter=3) is model
    GridSearchCV(model, {"max_iter": [1, 2]}, cv=2).fit(*two_classes)
