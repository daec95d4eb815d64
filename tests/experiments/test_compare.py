"""Comparisons are paired, corrected, and at chance for permuted labels."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.experiments.compare import Comparison, classical, compare, rivals

METHODS = {"bayes": lambda seed: GaussianNB(), "dummy": lambda seed: DummyClassifier()}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    return rng.normal(size=(60, 4)) + 2.0 * y[:, None], y


def test_an_informed_method_beats_a_dummy(data):
    found = compare(*data, METHODS, n_splits=5, n_repeats=2)
    assert found.accuracy["bayes"].shape == (10,)
    difference, p = found.against("bayes", "dummy")
    assert difference > 0.3
    assert p < 0.01


def test_on_permuted_labels_all_methods_are_at_chance(data):
    found = compare(*data, METHODS, n_permutations=6)
    # 360 predictions near one half: a deviation of 0.026, more as folds share samples.
    assert found.permuted["bayes"].mean() == pytest.approx(0.5, abs=0.12)


def test_the_corrected_p_value_is_larger_than_the_uncorrected_one():
    import scipy.stats

    rng = np.random.default_rng(0)
    scores = {"a": rng.normal(0.8, 0.05, 20), "b": rng.normal(0.77, 0.05, 20)}
    naive = scipy.stats.ttest_rel(scores["a"], scores["b"]).pvalue
    assert Comparison(scores, scores, {}, 0.2).against("a", "b")[1] > naive


def test_equal_scores_do_not_differ():
    scores = {name: np.linspace(0.5, 0.6, 5) for name in "ab"}
    assert Comparison(scores, scores, {}, 0.2).against("a", "b") == (0.0, 1.0)


def test_four_splits_or_one_difference_give_no_p_value():
    few = {"a": np.array([0.9, 0.8, 0.9, 0.7]), "b": np.array([0.6, 0.6, 0.5, 0.5])}
    difference, p = Comparison(few, few, {}, 0.2).against("a", "b")
    assert difference == pytest.approx(0.275)
    assert np.isnan(p)
    shifted = {"a": np.linspace(0.5, 0.7, 9), "b": np.linspace(0.4, 0.6, 9)}
    difference, p = Comparison(shifted, shifted, {}, 0.2).against("a", "b")
    assert difference == pytest.approx(0.1)
    assert np.isnan(p), "without variation between splits there is no estimate of it"


def test_the_p_value_is_that_of_the_corrected_resampled_t_test():
    import scipy.stats

    a, b = np.array([0.9, 0.8, 0.9, 0.7, 0.8, 0.9]), np.array([0.6, 0.7, 0.8, 0.7, 0.5, 0.9])
    t = np.mean(a - b) / np.sqrt((1 / 6 + 0.25 / 0.75) * np.var(a - b, ddof=1))
    scores = {"a": a, "b": b}
    p = Comparison(scores, scores, {}, 0.25).against("a", "b")[1]
    assert p == pytest.approx(2 * scipy.stats.t.sf(t, 5))


def test_rivals_are_chosen_by_name():
    assert list(rivals(None, 10)) == list(classical(10))
    assert list(rivals(["IWSS", " mrpsvm", "SVM"], 10)) == ["IWSS", "mrPSVM", "ANOVA 10 + SVM"]
    assert list(rivals(["all"], 10)) == [*classical(10), "mrPSVM", "IWSS"]
    with pytest.raises(InvalidParameterError, match=r"no method 'bayes'.*ridge, l1.*mrPSVM, IWSS"):
        rivals(["ridge", "bayes"], 10)


def test_two_phase_methods_can_be_fitted(data):
    x, y = data
    for make in rivals(["mrPSVM", "IWSS"], 4).values():
        assert make(0).fit(x, y).score(x, y) > 0.9


def test_too_few_samples_of_a_class_are_refused(data):
    x, _ = data
    with pytest.raises(InvalidInputError, match="smallest class has 2"):
        compare(x, (np.arange(60) < 2).astype(int), METHODS, n_splits=5)


def test_every_classical_pipeline_can_be_fitted(data):
    x, y = data
    for make in classical(4).values():
        assert make(0).fit(x, y).predict(x).shape == (60,)


def test_samples_of_a_group_are_in_the_same_fold():
    """Pairs of equal samples with random classes: only a twin in training tells the class."""
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(40, 5)), 2, axis=0)
    y = np.repeat(rng.integers(0, 2, 40), 2)
    pairs = np.repeat(np.arange(40), 2)
    methods = {"nearest": lambda seed: KNeighborsClassifier(1)}
    apart = compare(x, y, methods, n_permutations=2)
    together = compare(x, y, methods, n_permutations=2, groups=pairs)
    assert apart.accuracy["nearest"].mean() > 0.8
    assert together.accuracy["nearest"].mean() < 0.7
    assert together.permuted["nearest"].size == 10
    with pytest.raises(InvalidInputError, match="2 groups, too few for 5 folds"):
        compare(x, y, methods, groups=np.arange(80) % 2)


def test_permutations_have_a_spread_and_all_fits_are_announced():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 5)), np.arange(40) % 2
    methods = {"nearest": lambda seed: KNeighborsClassifier(1)}
    planned, done = [], []
    found = compare(
        x, y, methods, n_repeats=1, n_permutations=3, begin=planned.append, tell=done.append
    )
    assert planned == [len(done)] == [20]
    mean, spread = found.on_permuted("nearest")
    by_permutation = found.permuted["nearest"].reshape(3, 5).mean(axis=1)
    assert mean == pytest.approx(by_permutation.mean())
    assert spread == pytest.approx(by_permutation.std(ddof=1))
    assert found.on_permuted("other") is None
    once = compare(x, y, methods, n_repeats=1, n_permutations=1)
    assert once.on_permuted("nearest")[1] is None
