"""Feature selectors: selection, stability, accepted inputs, errors."""

from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from ratoon import SparseAutoencoderSelector, SparseFeatureSelector, SparseMLPClassifier
from ratoon.datasets import Dataset
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.estimators.selectors import stability_index, training_rows
from ratoon.evolution import NeuroFS
from ratoon.samples.groups import ConfoundedGroupsWarning


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 40))
    return x, np.where(x[:, 3] + x[:, 11] > 0, "up", "down")


@pytest.fixture(scope="module")
def fitted(data):
    return SparseFeatureSelector(2, n_repeats=4, random_state=0).fit(*data)


def test_the_features_that_determine_the_classes_are_selected(fitted):
    assert fitted.get_support(indices=True).tolist() == [3, 11]
    assert set(np.flatnonzero(fitted.ranking_ <= 2)) == {3, 11}
    assert fitted.stability_ == 1.0
    assert_array_equal(fitted.selection_frequency_[[3, 11]], 1.0)


def test_strengths_of_every_network_sum_to_1(fitted):
    assert fitted.strengths_.shape == (4, 40)
    assert fitted.strengths_.sum(axis=1) == pytest.approx(1.0)
    assert fitted.strength_.sum() == pytest.approx(1.0)


def test_the_same_seed_gives_the_same_strengths(data, fitted):
    again = SparseFeatureSelector(2, n_repeats=4, random_state=0).fit(*data)
    assert_array_equal(again.strengths_, fitted.strengths_)


def test_a_continuous_target_is_fitted_by_a_regressor(data):
    x, _ = data
    selector = SparseFeatureSelector(1, n_repeats=2, random_state=0).fit(x, 3.0 * x[:, 5])
    assert selector.get_support(indices=True).tolist() == [5]


def test_sparse_samples_are_accepted(data):
    x, y = data
    sparse = scipy.sparse.csr_array(np.where(np.abs(x) > 0.5, x, 0.0))
    selector = SparseFeatureSelector(2, n_repeats=2, random_state=0).fit(sparse, y)
    assert selector.get_support(indices=True).tolist() == [3, 11]
    assert scipy.sparse.issparse(selector.transform(sparse))


def test_feature_names_are_kept(data):
    pandas = pytest.importorskip("pandas")
    x, y = data
    table = pandas.DataFrame(x, columns=[f"gene{j}" for j in range(40)])
    selector = SparseFeatureSelector(2, n_repeats=2, random_state=0).fit(table, y)
    assert selector.get_feature_names_out().tolist() == ["gene3", "gene11"]


def test_it_works_in_a_pipeline(data):
    pipe = make_pipeline(
        SparseFeatureSelector(2, n_repeats=2, random_state=0), KNeighborsClassifier()
    )
    assert cross_val_score(pipe, *data, cv=3).mean() > 0.85


def test_scikit_learn_can_select_from_it_and_from_a_network(data):
    x, y = data
    inner = SparseFeatureSelector(5, n_repeats=2, random_state=0)
    assert SelectFromModel(inner, max_features=2).fit(x, y).transform(x).shape == (120, 2)
    network = SparseMLPClassifier((20,), epsilon=3, max_iter=5, random_state=0)
    assert SelectFromModel(network, max_features=4).fit(x, y).transform(x).shape[1] <= 4


def test_any_estimator_with_importances_is_accepted(data):
    forest = RandomForestClassifier(30, random_state=0)
    selector = SparseFeatureSelector(2, estimator=forest, n_repeats=2, resample="seeds")
    assert selector.fit(*data).get_support(indices=True).tolist() == [3, 11]
    with pytest.raises(InvalidParameterError, match="LogisticRegression does not have it"):
        SparseFeatureSelector(2, estimator=LogisticRegression()).fit(*data)


@pytest.mark.parametrize(
    "given",
    [
        {"n_features_to_select": 0},
        {"n_features_to_select": 1.5},
        {"n_features_to_select": "many"},
        {"n_repeats": 0},
        {"resample": "luck"},
    ],
)
def test_parameters_out_of_range_are_refused(data, given):
    with pytest.raises(InvalidParameterError, match=next(iter(given))):
        SparseFeatureSelector(**given).fit(*data)


def test_missing_labels_are_an_error(data):
    with pytest.raises(InvalidInputError, match="SparseAutoencoderSelector"):
        SparseFeatureSelector().fit(data[0], None)


def test_every_sample_is_left_out_once_and_no_class_disappears():
    y = np.array(["a"] * 12 + ["b"] * 5 + ["c"])
    parts = training_rows(y, 4, np.random.default_rng(0))
    left_out = np.concatenate([np.setdiff1d(np.arange(y.size), rows) for rows in parts])
    assert sorted(left_out.tolist()) == list(range(17)), "the only c always stays"
    assert all(set(y[rows]) == {"a", "b", "c"} for rows in parts)


def test_random_rankings_have_a_stability_of_about_0():
    rankings = np.random.default_rng(0).random((200, 50))
    # The index of M random choices has a deviation near sqrt(2 / d) / M: 0.001 here.
    assert abs(stability_index(rankings, 10)) < 0.01
    assert np.isnan(stability_index(rankings[:1], 10))
    assert np.isnan(stability_index(rankings, 50))


def test_the_autoencoder_is_rewired_by_the_given_strategy():
    rng = np.random.default_rng(1)
    shared = rng.normal(size=(150, 1))
    x = np.hstack([rng.normal(size=(150, 30)), shared + 0.3 * rng.normal(size=(150, 5))])
    given = SparseAutoencoderSelector(5, n_repeats=2, random_state=0, evolution=NeuroFS(5)).fit(x)
    assert given.get_support(indices=True).tolist() == [30, 31, 32, 33, 34]
    assert (np.count_nonzero(given.strengths_, axis=1) == 5).all(), "no other input is left"
    with pytest.raises(InvalidParameterError, match=r"`zeta=0\.5` is for SET"):
        SparseAutoencoderSelector(zeta=0.5, evolution="rigl").fit(x)


def test_the_autoencoder_selects_correlated_features_without_labels():
    rng = np.random.default_rng(1)
    shared = rng.normal(size=(150, 1))
    x = np.hstack([rng.normal(size=(150, 30)), shared + 0.3 * rng.normal(size=(150, 5))])
    x[:, 0] = 7.0
    selector = SparseAutoencoderSelector(5, n_repeats=2, random_state=0).fit(x)
    assert selector.get_support(indices=True).tolist() == [30, 31, 32, 33, 34]
    assert selector.strength_[0] == 0.0, "a constant feature has no information"
    with pytest.raises(InvalidParameterError, match="noise"):
        SparseAutoencoderSelector(noise=-1.0).fit(x)


class Recorder(SparseMLPClassifier):
    """Notes the rows and the groups that it is fitted to."""

    seen: ClassVar[list] = []

    def fit(self, X, y, groups=None):
        self.seen.append((X[:, -1].astype(int), groups))
        self.feature_importances = np.arange(X.shape[1], dtype=float)
        return self

    @property
    def feature_importances_(self):
        return self.feature_importances


@pytest.mark.parametrize(("resample", "n_fits"), [("halves", 7), ("folds", 6)])
def test_a_group_is_never_in_both_parts(data, resample, n_fits):
    x, y = data
    x = np.column_stack([x, np.arange(120)])
    patients = np.arange(120) // 3
    Recorder.seen = []
    SparseFeatureSelector(
        2, estimator=Recorder(), n_repeats=6, resample=resample, random_state=0
    ).fit(x, y, groups=[f"P{p}" for p in patients])
    assert len(Recorder.seen) == n_fits
    for rows, groups in Recorder.seen:
        assert np.unique(patients[rows], return_counts=True)[1].tolist() == [3] * (rows.size // 3)
        assert groups.size == rows.size
    if resample == "halves":
        for (one, _), (other, _) in zip(Recorder.seen[0:6:2], Recorder.seen[1:6:2], strict=True):
            assert_array_equal(np.sort(np.r_[one, other]), np.arange(120))


def test_groups_of_a_data_set_are_kept_together(data):
    x, y = data
    codes = np.unique(y, return_inverse=True)[1]
    patients = tuple(f"P{k // 4:02}" for k in range(120))
    labelled = Dataset(x, codes, class_names=("down", "up"), groups=patients)
    found = SparseFeatureSelector(2, n_repeats=2, random_state=0).fit(labelled)
    same = SparseFeatureSelector(2, n_repeats=2, random_state=0).fit(x, y, groups=patients)
    assert_array_equal(found.strengths_, same.strengths_)
    other = SparseFeatureSelector(2, n_repeats=2, random_state=0).fit(x, y)
    assert (found.strengths_ != other.strengths_).any()
    assert found.get_support(indices=True).tolist() == [3, 11]


def test_groups_of_one_class_each_cannot_be_halved(data):
    x, y = data
    batches = np.where(y == "up", "a", "b")
    with pytest.warns(ConfoundedGroupsWarning, match="may learn the group"):
        SparseFeatureSelector(2, n_repeats=2, resample="seeds", random_state=0).fit(
            x, y, groups=batches
        )
    with (
        pytest.warns(ConfoundedGroupsWarning),
        pytest.raises(InvalidInputError, match="samples of one class only"),
    ):
        SparseFeatureSelector(2, n_repeats=2, random_state=0).fit(x, y, groups=batches)
