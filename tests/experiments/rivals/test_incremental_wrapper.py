"""IWSS: the ranking, and the selection compared with one feature at a time."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import check_estimator

from ratoon.errors import InvalidParameterError
from ratoon.experiments.rivals import IncrementalWrapper
from ratoon.experiments.rivals.incremental_wrapper import symmetrical_uncertainty
from ratoon.experiments.split import fold_numbers


def data_of(n_classes=3, n=60, n_features=300, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    x = rng.normal(size=(n, n_features))
    x[:, : 4 * n_classes] += 1.2 * np.tile(np.eye(n_classes), 4)[y]
    return x, y


def test_symmetrical_uncertainty_matches_a_hand_calculation():
    # Both bins have half of the samples; of the lower one 3 of 4 are of class 0.
    x = np.arange(8.0)[:, None]
    y = np.array([0, 0, 0, 1, 0, 1, 1, 1])
    h = -(0.75 * np.log2(0.75) + 0.25 * np.log2(0.25))
    assert symmetrical_uncertainty(x, y, 2) == pytest.approx([1 - h])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("min_better", [1, 3])
def test_selection_agrees_with_one_feature_at_a_time(n_classes, min_better):
    x, y = data_of(n_classes)
    model = IncrementalWrapper(min_better=min_better).fit(x, y)

    z = (x - x.mean(axis=0)) / x.std(axis=0)
    folds = fold_numbers(y, 5, 0)

    def correct(features):
        found = []
        for fold in range(5):
            train, test = folds != fold, folds == fold
            if features:
                bayes = GaussianNB().fit(z[train][:, features], y[train])
                found.append(np.sum(bayes.predict(z[test][:, features]) == y[test]))
            else:
                found.append(np.sum(y[test] == np.bincount(y[train]).argmax()))
        return np.array(found)

    kept, best = [], correct([])
    for feature in np.argsort(-symmetrical_uncertainty(x, y, 3), kind="stable"):
        now = correct([*kept, int(feature)])
        if now.sum() > best.sum() and np.sum(now > best) >= min_better:
            kept, best = [*kept, int(feature)], now

    assert len(kept) > 1
    assert model.features_.tolist() == kept
    assert model.n_tried_ == 300
    bayes = GaussianNB().fit(z[:, kept], y)
    assert model.predict(x).tolist() == bayes.predict(z[:, kept]).tolist()
    np.testing.assert_allclose(model.predict_proba(x).sum(axis=1), 1.0)


def test_without_a_useful_feature_the_largest_class_is_predicted():
    x, y = np.ones((9, 4)), np.array([0, 1, 1, 1, 0, 1, 1, 2, 1])
    model = IncrementalWrapper().fit(x, y)
    assert model.features_.size == 0
    assert model.predict(x).tolist() == [1] * 9


def test_a_class_with_one_sample_is_accepted():
    x, y = data_of(2)
    y[0] = 2
    model = IncrementalWrapper().fit(x, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(x, y) > 0.8


def test_only_the_first_features_are_tried():
    x, y = data_of()
    model = IncrementalWrapper(max_tried=3).fit(x, y)
    assert model.n_tried_ == 3
    assert set(model.features_) <= set(np.argsort(-model.uncertainty_, kind="stable")[:3])


@pytest.mark.parametrize(
    "options",
    [
        {"n_folds": 1},
        {"min_better": 0},
        {"min_better": 6},
        {"n_bins": 1},
        {"max_tried": 0},
        {"var_smoothing": 0.0},
    ],
)
def test_impossible_settings_are_refused(options):
    with pytest.raises(InvalidParameterError, match=next(iter(options))):
        IncrementalWrapper(**options).fit(*data_of())


def test_scikit_learn_accepts_it():
    check_estimator(IncrementalWrapper(n_folds=2, min_better=1), on_skip=None)
