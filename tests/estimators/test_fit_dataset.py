"""`fit(dataset)`: feature names and labels come from the data set."""

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

import ratoon
from ratoon import SparseFeatureSelector, SparseMLPClassifier, SparseMLPRegressor
from ratoon.datasets import Dataset
from ratoon.datasets.stored import open_stored
from ratoon.errors import InvalidInputError

NAMES = tuple(f"gene{k}" for k in range(8))
CLASSES = ("well", "ill", "unknown")  # neither sorted nor all present


@pytest.fixture
def data(two_classes):
    X, y = two_classes
    return Dataset(X, y, feature_names=NAMES, class_names=CLASSES)


def classifier(**options):
    return SparseMLPClassifier((12,), max_iter=4, random_state=0, **options)


def test_a_classifier_learns_names_and_classes_as_text(data):
    expected = classifier().fit(data.X, data.labels)
    fitted = classifier().fit(data)
    assert fitted.feature_names_in_.tolist() == list(NAMES)
    assert fitted.classes_.tolist() == ["ill", "well"]
    assert_array_equal(fitted.predict_proba(data), expected.predict_proba(data.X))
    assert set(fitted.predict(data)) <= {"ill", "well"}
    assert fitted.score(data, data.labels) == expected.score(data.X, data.labels)


def test_names_and_classes_are_saved_with_the_model(data, tmp_path):
    classifier().fit(data).save(tmp_path / "model.ratoon")
    loaded = ratoon.load(tmp_path / "model.ratoon")
    assert loaded.feature_names_in_.tolist() == list(NAMES)
    assert loaded.classes_.tolist() == ["ill", "well"]
    other = Dataset(data.X, feature_names=NAMES[::-1])
    with pytest.raises(InvalidInputError, match="not those of training"):
        loaded.predict(other)


def test_a_regressor_learns_the_numbers(two_classes):
    X, _ = two_classes
    data = Dataset(X, X[:, 1] * 2, feature_names=NAMES)
    make = lambda: SparseMLPRegressor((12,), max_iter=4, random_state=0)  # noqa: E731
    fitted = make().fit(data)
    assert_array_equal(fitted.predict(data), make().fit(X, X[:, 1] * 2).predict(X))
    assert fitted.feature_names_in_.tolist() == list(NAMES)


def test_given_targets_replace_the_labels(data):
    y = np.repeat(["a", "b"], 45)
    assert classifier().fit(data, y).classes_.tolist() == ["a", "b"]


def test_validation_data_epochs_and_reports_use_the_labels_too(data, tmp_path):
    first, last = data.take(np.arange(60)), data.take(np.arange(60, 90))
    fitted = classifier().fit(first, eval_set=(last, None), report=tmp_path / "page.html")
    expected = classifier().fit(first.X, first.labels, eval_set=(last.X, last.labels))
    assert fitted.validation_scores_ == expected.validation_scores_
    assert "gene0" in (tmp_path / "page.html").read_text(encoding="utf-8")
    classifier().fit(first, report=tmp_path / "trained.html")
    steps = classifier()
    for _ in range(4):
        steps.partial_fit(first, eval_set=(last, None))
    assert_array_equal(steps.predict_proba(last), fitted.predict_proba(last))


def test_sparse_and_stored_data_sets_are_fitted_alike(two_classes, tmp_path):
    X, y = two_classes
    sparse = Dataset(scipy.sparse.csr_array(np.maximum(X, 0)), y, class_names=("no", "yes"))
    assert classifier().fit(sparse).classes_.tolist() == ["no", "yes"]
    with h5py.File(tmp_path / "big.h5", "w") as file:
        file["X"], file["y"] = X, np.where(y == 1, "yes", "no").astype("S")
    stored = open_stored(tmp_path / "big.h5", label="y")
    expected = classifier().fit(X, stored.labels)
    assert_array_equal(classifier().fit(stored).predict(stored), expected.predict(X))


def test_a_data_set_without_labels_needs_y(data):
    unlabelled = Dataset(data.X, feature_names=NAMES)
    for fit in (classifier().fit, classifier().partial_fit, SparseFeatureSelector(3).fit):
        with pytest.raises(InvalidInputError, match="requires y to be passed"):
            fit(unlabelled)
        with pytest.raises(InvalidInputError, match="requires y to be passed"):
            fit(data.X)


def test_a_selector_uses_the_labels_too(data):
    estimator = classifier(epsilon=5)
    expected = SparseFeatureSelector(3, estimator=estimator, n_repeats=2, random_state=0)
    expected.fit(data.X, data.labels)
    found = SparseFeatureSelector(3, estimator=estimator, n_repeats=2, random_state=0).fit(data)
    assert_array_equal(found.ranking_, expected.ranking_)
    assert set(found.get_feature_names_out()) <= set(NAMES)


def test_a_table_with_columns_called_as_fields_of_a_data_set_is_a_table(two_classes):
    X, y = two_classes
    names = ["X", "feature_names", "var_names", "labels", "y", "data", "shape_", "h"]
    fitted = classifier().fit(pd.DataFrame(X, columns=names), y)
    assert fitted.feature_names_in_.tolist() == names
    with pytest.raises(InvalidInputError, match="requires y to be passed"):
        classifier().fit(pd.DataFrame(X, columns=names))
