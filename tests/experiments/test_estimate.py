"""Estimates by cross-validation are honest and repeatable, and use every sample once a repeat."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from ratoon import SparseMLPClassifier, SparseMLPRegressor, SparseMLPSurvival
from ratoon.datasets import Dataset, make_microarray
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.experiments import cross_validate, own_estimate
from ratoon.experiments.estimate import folds_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 6))
Y = np.where(X[:, 0] + 0.5 * RNG.normal(size=60) > 0, "ill", "well")


class Memory(ClassifierMixin, BaseEstimator):
    """Knows its training samples by heart, and says "ill" to all others."""

    def fit(self, X, y):
        self.classes_, self.known_ = (
            np.unique(y),
            {x.tobytes(): v for x, v in zip(X, y, strict=True)},
        )
        return self

    def predict_proba(self, X):
        labels = np.array([self.known_.get(x.tobytes(), "ill") for x in X])
        return (labels[:, None] == self.classes_).astype(float)


def test_no_sample_is_predicted_by_a_model_that_was_trained_on_it():
    found = cross_validate(Memory(), X, Y, cv="5x2")
    assert found.scores.accuracy.value == pytest.approx((Y == "ill").mean())


def test_probabilities_are_those_of_scikit_learn_on_the_same_folds():
    found = cross_validate(LogisticRegression(), X, Y, cv="4x1", seed=3)
    splits = [
        (np.flatnonzero(found.folds[0] != k), np.flatnonzero(found.folds[0] == k)) for k in range(4)
    ]
    expected = cross_val_predict(LogisticRegression(), X, Y, cv=splits, method="predict_proba")
    # The same computation.
    assert np.array_equal(found.predictions.probabilities[0], expected)


def test_the_same_seed_gives_the_same_numbers():
    model = SparseMLPClassifier((8,), max_iter=3, random_state=0)
    first = cross_validate(model, X, Y, cv="3x2")
    again = cross_validate(model, X, Y, cv="3x2", n_jobs=2)
    assert np.array_equal(first.predictions.probabilities, again.predictions.probabilities)
    other = cross_validate(model, X, Y, cv="3x2", seed=1)
    assert not np.array_equal(first.folds, other.folds)


def test_classes_are_spread_and_repeats_differ():
    folds = cross_validate(LogisticRegression(), X, Y, cv="5x3").folds
    counts = np.array([np.bincount(one[Y == "ill"], minlength=5) for one in folds])
    assert (counts.max(axis=1) - counts.min(axis=1) <= 1).all()
    assert not np.array_equal(folds[0], folds[1])


def test_a_group_is_never_in_two_folds():
    groups = np.repeat(np.arange(15), 4)
    found = cross_validate(LogisticRegression(), X, Y, cv="5x2", groups=groups)
    for one in found.folds:
        assert all(np.unique(one[groups == group]).size == 1 for group in range(15))
    assert "groups" in found.how
    with pytest.raises(InvalidInputError, match="15 groups, too few for 20 folds"):
        cross_validate(LogisticRegression(), X, Y, cv="20x1", groups=groups)


def test_a_class_with_one_sample_is_never_predicted_right():
    y = Y.astype(object)
    y[0] = "rare"
    found = cross_validate(LogisticRegression(), X, y.astype(str), cv="5x2")
    assert found.predictions.classes == ("ill", "rare", "well")
    assert found.scores.classes[1].recall.value == 0.0


def test_sparse_samples_data_sets_and_numbers():
    data, _ = make_microarray(40, 120, 2, 20, random_state=0)
    model = SparseMLPClassifier(random_state=0)
    dense = cross_validate(model, data, cv="3x1")
    assert dense.scores.n_samples == 40
    sparse = Dataset(
        scipy.sparse.csr_matrix(np.maximum(data.X, 0)), data.y, class_names=data.class_names
    )
    found = cross_validate(model, sparse, cv="3x1")
    p = found.predictions.probabilities
    assert np.isfinite(p).all()
    assert (p.max(axis=2) < 1.0).any()
    assert found.scores.accuracy.value > 0.9  # no value is 0: the same data as the dense ones
    x = RNG.normal(size=(80, 120))
    found = cross_validate(SparseMLPRegressor(random_state=0), x, x[:, 0] * 3 + 1, cv="4x2")
    assert found.predictions.predicted.shape == (2, 80)
    assert found.scores.r2.value > 0.5


def test_the_own_estimate_of_the_closed_form_says_what_it_is():
    data, _ = make_microarray(60, 300, 2, 30, effect=1.0, random_state=0)
    model = SparseMLPClassifier(random_state=0).fit(data)
    found = own_estimate(model, data.labels)
    assert "slightly too good" in found.how
    assert found.scores.accuracy.value <= model.score(data, data.labels)
    x = RNG.normal(size=(40, 200))
    regressor = SparseMLPRegressor(random_state=0).fit(x, 100 + x[:, 0])
    assert 95 < own_estimate(regressor, 100 + x[:, 0]).predictions.predicted.mean() < 105
    with pytest.raises(InvalidInputError, match="no out-of-fold outputs"):
        own_estimate(SparseMLPClassifier((4,), max_iter=2, random_state=0).fit(X, Y), Y)


@pytest.mark.parametrize("cv", ["1x3", "5x0", "x", "", "5x3x2", 0, 99999, "\uff15x3"])
def test_impossible_folds_are_refused(cv):
    with pytest.raises(InvalidParameterError, match="`cv` must be"):
        folds_of(cv)


def test_impossible_samples_are_refused():
    with pytest.raises(InvalidInputError, match="single class"):
        cross_validate(LogisticRegression(), X[:4], ["a", "a", "a", "b"], cv="4x1")
    with pytest.raises(InvalidInputError, match="needs `y`"):
        cross_validate(LogisticRegression(), X)
    with pytest.raises(InvalidInputError, match="one label or number per sample"):
        cross_validate(LogisticRegression(), X, np.zeros((60, 2)))


def survival(n=60):
    y = np.empty(n, dtype=[("event", bool), ("time", float)])
    y["time"] = RNG.exponential(np.exp(-2 * X[:n, 0]))
    y["event"] = np.arange(n) % 3 > 0
    return y


def test_survival_times_are_predicted_fold_by_fold():
    y, model = survival(), SparseMLPSurvival((8,), max_iter=15, random_state=0)
    patients = np.arange(60) // 2
    found = cross_validate(model, X, y, cv="4x2", groups=patients)
    assert found.scores.n_events == 40
    assert found.scores.concordance.value > 0.65
    assert "stratified by event within groups" in found.how
    for folds in found.folds:
        assert all(np.unique(folds[patients == p]).size == 1 for p in range(30))
        events = [y["event"][folds == k].sum() for k in range(4)]
        assert max(events) - min(events) <= 2
    again = cross_validate(
        model, Dataset(X, y, groups=tuple(f"{p:02}" for p in patients)), cv="4x2"
    )
    assert again.scores == found.scores
    first = np.flatnonzero(found.folds[0] != 0), np.flatnonzero(found.folds[0] == 0)
    alone = SparseMLPSurvival((8,), max_iter=15, random_state=0).fit(X[first[0]], y[first[0]])
    risks = alone.predict(X[first[1]]) - alone.predict(X[first[0]]).mean()
    np.testing.assert_array_equal(found.predictions.predicted[0, first[1]], risks)


def test_survival_times_need_events_in_every_training_part():
    y = survival()
    y["event"] = np.arange(60) == 7
    with pytest.raises(InvalidInputError, match="samples without any event; of 60 samples 1"):
        cross_validate(SparseMLPSurvival((8,), max_iter=2), X, y)
    with pytest.raises(InvalidInputError, match="one label or number per sample"):
        cross_validate(SparseMLPRegressor((8,), max_iter=2), X, y)


def test_the_own_estimate_of_survival_is_that_of_the_committee():
    wide = np.hstack([X, RNG.normal(size=(60, 150))])
    model = SparseMLPSurvival(random_state=0).fit(wide, survival())
    found = own_estimate(model, survival())
    assert found.predictions.predicted[0].tolist() == model.cross_validated_outputs_[:, 0].tolist()
    assert "slightly too good" in found.how
