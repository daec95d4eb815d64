"""Whatever `fit` accepts as classes and names, `save` can write and `load` can read."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ratoon import SparseMLPClassifier, load
from ratoon.datasets import Dataset
from ratoon.errors import InvalidInputError
from ratoon.estimators.state import UnsavedParameterWarning

CHARACTERS = st.one_of(
    st.characters(exclude_categories=()), st.sampled_from("\0\ud800\udfff\n\t ,\u0301\U0010ffff")
)
TEXTS = st.text(CHARACTERS, max_size=4)
NUMBERS = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from([-0.0, 2**53 + 1, 2**63, 2**64 - 1, 1e30]),
)
LABELS = st.one_of(TEXTS, st.none(), st.binary(max_size=3), NUMBERS)
FORMS: dict[str, Callable] = {
    "list": list,
    "object": lambda labels: np.array([*labels, None], dtype=object)[:-1],
    "array": np.array,
    "series": lambda labels: pd.Series(labels, dtype=object),
    "fixed width": lambda labels: np.array([str(label) for label in labels], dtype="U7"),
    "text objects": lambda labels: np.array([np.str_(label) for label in labels], dtype=object),
}


def fit(X, y, **parameters):
    model = SparseMLPClassifier((3,), max_iter=1, random_state=0, scale=None, **parameters)
    return model.fit(X, y)


def check_round_trip(model, X, path):
    model.save(path)
    again = load(path)
    assert again.classes_.dtype == model.classes_.dtype.newbyteorder("=")
    assert again.classes_.tolist() == model.classes_.tolist()
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        assert again.feature_names_in_.tolist() == [str(name) for name in names]
    assert again.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")  # of scikit-learn
@settings(max_examples=120, deadline=None)
@given(st.sampled_from(sorted(FORMS)), st.lists(LABELS, min_size=2, max_size=5, unique_by=repr))
@example("object", ["a\0", "a"])
@example("list", ["a\0", "a"])
@example("series", ["\0", ""])
@example("list", ["\ud800", "b"])
@example("list", [-0.0, 1.0])
@example("list", [2**64 - 1, 0])
@example("list", [True, False])
@example("object", ["a", "\U0010ffff\0b"])
# of scikit-learn 1.5 to 1.7
@pytest.mark.filterwarnings("ignore:Support for labels represented as bytes:FutureWarning")
def test_classes_that_fit_accepts_are_saved_and_loaded(tmp_path_factory, form, labels):
    try:
        y = FORMS[form](labels * 3)
    except (TypeError, ValueError, OverflowError):
        return  # no such array
    X = np.eye(3 * len(labels), 2, dtype=np.float32)
    try:
        model = fit(X, y)
    except (TypeError, ValueError):
        return
    check_round_trip(model, X, tmp_path_factory.getbasetemp() / "classes.ratoon")


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["table", "dataset"]), st.lists(TEXTS, min_size=2, max_size=4))
@example("table", ["a\0", "a"])
@example("dataset", ["", "\0"])
@example("dataset", ["\ud800", "b"])
def test_feature_names_that_fit_accepts_are_saved_and_loaded(tmp_path_factory, form, names):
    values = np.eye(6, len(names), dtype=np.float32)
    try:
        if form == "table":
            X = pd.DataFrame(values, columns=pd.Index(names, dtype=object))
        else:
            X = Dataset(values, feature_names=tuple(names))
        model = fit(X, [0, 1] * 3)
    except (TypeError, ValueError):
        return
    check_round_trip(model, X, tmp_path_factory.getbasetemp() / "names.ratoon")


@pytest.mark.parametrize("form", ["list", "object", "series", "text objects"])
def test_a_class_name_that_ends_in_nul_is_refused_before_training(form):
    with pytest.raises(InvalidInputError, match="ends in a NUL"):
        fit(np.eye(6, 2), FORMS[form](["a\0", "b"] * 3))


def test_class_names_of_a_data_set_that_end_in_nul_are_not_merged():
    data = Dataset(np.eye(4), np.array([0, 1, 2, 2]), class_names=("a", "a\0", "b"))
    with pytest.raises(InvalidInputError, match="ends in a NUL"):
        fit(data, None)


@pytest.mark.parametrize(
    "y",
    [
        ["\ud800", "b"] * 3,
        np.array([0, 1] * 3, dtype=np.longdouble),
        ["x" * (2**20 + 1), "b"] * 3,
    ],
    ids=["lone surrogate", "long double", "too wide"],
)
def test_classes_that_no_file_can_hold_are_refused_before_training(y):
    with pytest.raises(InvalidInputError, match="could not be saved"):
        fit(np.eye(6, 2), y)


def test_a_feature_name_with_a_lone_surrogate_is_refused_before_training():
    data = Dataset(np.eye(6, 2), feature_names=("a", "\udfff"))
    with pytest.raises(InvalidInputError, match=r"feature names: .* is not valid Unicode"):
        fit(data, [0, 1] * 3)


@pytest.mark.parametrize("classes", [["a\0", "b"], [1, "b", None], [[0, 1]], [0.0, np.nan]])
def test_partial_fit_refuses_classes_that_no_file_can_hold(classes):
    with pytest.raises(InvalidInputError, match="class"):
        SparseMLPClassifier((3,)).partial_fit(np.eye(2), [0, 1], classes=classes)


def test_one_long_feature_name_does_not_pad_the_others(tmp_path):
    names = ("x" * 2_000_000, *(f"f{j}" for j in range(99)))
    data = Dataset(np.eye(6, 100), feature_names=names)
    model = fit(data, [0, 1] * 3)
    check_round_trip(model, data, tmp_path / "model")
    assert (tmp_path / "model").stat().st_size < 3_000_000


def test_a_class_weight_too_long_for_the_header_is_left_out_with_a_warning(tmp_path):
    y = np.array(["x" * 2**20, "b"] * 3, dtype=object)
    model = fit(np.eye(6, 2), y, class_weight={y[0]: 2.0})
    with pytest.warns(UnsavedParameterWarning, match="class_weight"):
        model.save(tmp_path / "model")
    with pytest.warns(UnsavedParameterWarning, match="class_weight"):
        assert load(tmp_path / "model").classes_.tolist() == model.classes_.tolist()
