"""Scores agree with scikit-learn, intervals with published formulas and with simulation."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import (
    accuracy_score,
    auc,
    average_precision_score,
    balanced_accuracy_score,
    brier_score_loss,
    log_loss,
    mean_absolute_error,
    precision_recall_fscore_support,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

from ratoon.errors import InvalidInputError
from ratoon.metrics import Predictions, class_scores, number_scores, survival_scores
from ratoon.metrics.curves import calibration, precision_recall_curves, roc_curves
from ratoon.metrics.intervals import area, bootstrap, mean_of, wilson
from ratoon.survival import concordance_index

RNG = np.random.default_rng(0)


def some(n_classes, n=80, n_repeats=1, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n)
    p = rng.dirichlet(np.ones(n_classes), (n_repeats, n))
    p[:, np.arange(n), truth] += 0.3
    p /= p.sum(axis=2, keepdims=True)
    return Predictions.of_classes(truth, p, [f"class {k}" for k in range(n_classes)])


@pytest.mark.parametrize("n_classes", [2, 4])
def test_scores_of_classes_are_those_of_scikit_learn(n_classes):
    found = some(n_classes)
    truth, guess, p = found.truth, found.predicted[0], found.probabilities[0]
    scores = class_scores(found)
    precision, recall, _, counts = precision_recall_fscore_support(truth, guess)
    # The same sums in another order.
    close = {"rel": 1e-12}
    assert scores.accuracy.value == pytest.approx(accuracy_score(truth, guess), **close)
    assert scores.balanced_accuracy.value == pytest.approx(
        balanced_accuracy_score(truth, guess), **close
    )
    assert scores.log_loss.value == pytest.approx(log_loss(truth, p), **close)
    areas = roc_auc_score(truth, p[:, 1] if n_classes == 2 else p, multi_class="ovr")
    assert scores.roc_auc.value == pytest.approx(areas, **close)
    if n_classes == 2:
        assert scores.brier.value == pytest.approx(brier_score_loss(truth, p[:, 1]), **close)
    assert [row.precision.value for row in scores.classes] == pytest.approx(precision, **close)
    assert [row.recall.value for row in scores.classes] == pytest.approx(recall, **close)
    assert [row.n_samples for row in scores.classes] == counts.tolist()
    assert scores.baseline == pytest.approx(counts.max() / counts.sum())


def test_scores_of_numbers_are_those_of_scikit_learn():
    truth = RNG.normal(size=50)
    guess = truth + RNG.normal(size=50)
    scores = number_scores(Predictions.of_numbers(truth, guess))
    assert scores.r2.value == pytest.approx(r2_score(truth, guess))
    assert scores.rmse.value == pytest.approx(root_mean_squared_error(truth, guess))
    assert scores.mae.value == pytest.approx(mean_absolute_error(truth, guess))
    assert scores.r2.low < scores.r2.value < scores.r2.high
    assert scores.rmse.low < scores.rmse.value < scores.rmse.high
    assert number_scores(Predictions.of_numbers(truth, guess)) == scores
    assert scores.baseline == pytest.approx(truth.std())


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (88, 100), (1, 3)])
def test_intervals_of_proportions_are_wilsons(k, n):
    expected = binomtest(k, n).proportion_ci(method="wilson")
    found = wilson(k / n, n)
    # SciPy takes another quantile function.
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_repeats_do_not_narrow_the_interval():
    once = some(3, n_repeats=1)
    thrice = Predictions(
        once.truth,
        np.repeat(once.predicted, 3, 0),
        np.repeat(once.probabilities, 3, 0),
        once.classes,
    )
    assert class_scores(thrice).accuracy == class_scores(once).accuracy
    assert class_scores(thrice).brier.high == pytest.approx(class_scores(once).brier.high)
    assert class_scores(thrice).agreement == pytest.approx(1.0)
    assert class_scores(once).agreement is None


def test_scores_of_repeats_are_their_means():
    found = some(2, n_repeats=3)
    each = [
        class_scores(
            Predictions(
                found.truth,
                found.predicted[k : k + 1],
                found.probabilities[k : k + 1],
                found.classes,
            )
        )
        for k in range(3)
    ]
    both = class_scores(found)
    for name in ("accuracy", "roc_auc", "log_loss", "brier", "balanced_accuracy"):
        mean = np.mean([getattr(one, name).value for one in each])
        assert getattr(both, name).value == pytest.approx(mean)


@pytest.mark.parametrize(("true_area", "n_each"), [(0.76, 30), (0.98, 12)])
def test_intervals_of_areas_cover_about_95_per_cent(true_area, n_each):
    from scipy.stats import norm

    shift = np.sqrt(2) * norm.ppf(true_area)
    rng, covered = np.random.default_rng(1), []
    labels = np.repeat([0, 1], n_each)
    for _ in range(400):
        scores = np.concatenate((rng.normal(size=n_each), shift + rng.normal(size=n_each)))
        found = area(roc_auc_score(labels, scores), n_each, n_each)
        covered.append(found.low <= true_area <= found.high)
    # The standard error of a coverage of 0.95 from 400 trials is 0.011; Newcombe's method errs on
    # the safe side for areas near 1.
    assert 0.92 <= np.mean(covered) <= 1.0


def test_intervals_stay_inside_their_range():
    for value in (0.0, 1e-6, 0.3, 1 - 1e-6, 1.0):
        found = area(value, 4, 7)
        assert 0.0 <= found.low <= value <= found.high <= 1.0
        assert found.high - found.low > 0.05
    found = mean_of([wilson(1.0, 5), wilson(1.0, 5)])
    assert found.low < 0.9
    assert found.high == 1.0


def test_the_bootstrap_is_that_of_resampled_rows():
    values = RNG.normal(size=40)
    low, high = bootstrap(lambda counts: counts @ values / 40, 40)
    half = 1.96 * values.std() / np.sqrt(40)
    # 1,000 resamples: each limit has a standard error of about 5 % of the half width.
    assert (low, high) == pytest.approx(
        (values.mean() - half, values.mean() + half), abs=0.2 * half
    )
    assert bootstrap(lambda counts: counts[:, 0], 2) is None


def test_a_class_without_samples_has_no_scores():
    found = class_scores(Predictions.of_classes([0, 0], [[0.9, 0.1], [0.2, 0.8]], ("a", "b")))
    assert found.roc_auc.value is None
    assert found.classes[1].recall.value is None
    assert found.balanced_accuracy.value == 0.5
    assert roc_curves(Predictions.of_classes([0, 0], [[0.9, 0.1], [0.2, 0.8]], ("a", "b"))) == []


def test_the_baseline_is_the_largest_class_of_training():
    found = Predictions.of_classes([0, 1, 1], [[0.9, 0.1]] * 3, ("a", "b"))
    assert class_scores(found).baseline == pytest.approx(2 / 3)
    assert class_scores(found, largest=0).baseline == pytest.approx(1 / 3)


def test_a_certain_error_has_a_finite_loss():
    found = class_scores(Predictions.of_classes([0, 1], [[0.0, 1.0], [0.0, 1.0]], ("a", "b")))
    assert np.isfinite(found.log_loss.value)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_curves_have_the_areas_of_scikit_learn(n_classes):
    found = some(n_classes, n_repeats=2)
    codes = [1] if n_classes == 2 else range(n_classes)
    for code, roc, pr in zip(codes, roc_curves(found), precision_recall_curves(found), strict=True):
        is_class = found.truth == code
        p = found.probabilities[:, :, code]
        assert roc.area == pytest.approx(np.mean([roc_auc_score(is_class, one) for one in p]))
        assert pr.area == pytest.approx(
            np.mean([average_precision_score(is_class, one) for one in p])
        )
        # The drawn curve is a mean over the repeats on 201 points.
        assert auc(roc.x, roc.y) == pytest.approx(roc.area, abs=0.01)
        assert (np.diff(roc.x) >= 0).all()
        assert (np.diff(roc.y) >= -1e-12).all()


def test_calibration_counts_every_prediction_once():
    found = some(2, n=100, n_repeats=3)
    bins = calibration(found)
    assert len(bins) == 10
    assert sum(one.n for one in bins) == pytest.approx(100, abs=5)  # each is rounded
    same = Predictions.of_classes([0, 1] * 10, [[0.5, 0.5]] * 20, ("a", "b"))
    assert [(one.mean, one.share.value) for one in calibration(same)] == [(0.5, 0.5)]


def test_the_consensus_is_that_of_the_mean_probabilities():
    p = [[[0.6, 0.4]], [[0.55, 0.45]], [[0.1, 0.9]]]
    found = Predictions.of_classes([0], p, ("a", "b"))
    assert found.predicted.tolist() == [[0], [0], [1]]
    assert found.consensus().tolist() == [1]
    given = Predictions.of_classes([0], p[0], ("a", "b"), predicted=[1])
    assert given.consensus().tolist() == [1]
    assert found.confusion().tolist() == [[2 / 3, 0.0], [1 / 3, 0.0]]


def test_impossible_predictions_are_refused():
    with pytest.raises(InvalidInputError, match="one row per sample"):
        Predictions.of_classes([0, 1], [[1.0, 0.0]], ("a", "b"))
    with pytest.raises(InvalidInputError, match="class codes"):
        Predictions.of_classes([2], [[1.0, 0.0]], ("a", "b"))
    with pytest.raises(InvalidInputError, match="same length"):
        Predictions.of_numbers([1.0], [1.0, 2.0])
    with pytest.raises(InvalidInputError, match="no samples"):
        class_scores(Predictions.of_classes([], np.empty((0, 2)), ("a", "b")))


def survival(seed, n=150):
    rng = np.random.default_rng(seed)
    risk = rng.normal(size=n)
    time, end = rng.exponential(np.exp(-risk)), rng.exponential(2.0, n)
    return time <= end, np.minimum(time, end), risk


def test_the_interval_of_the_concordance_covers_the_truth_in_95_percent():
    event, time, risk = survival(0, n=20_000)
    truth = concordance_index(event, time, risk)
    covered = 0
    for seed in range(1, 301):
        found = survival_scores(Predictions.of_survival(*survival(seed, n=80))).concordance
        covered += found.low <= truth <= found.high
    # 300 data sets give the coverage with a standard error of 1.3 points.
    assert 0.91 <= covered / 300 <= 0.98


def test_repeated_risks_are_no_new_evidence():
    event, time, risk = survival(1)
    once = survival_scores(Predictions.of_survival(event, time, risk)).concordance
    thrice = survival_scores(Predictions.of_survival(event, time, [risk] * 3)).concordance
    assert (thrice.value, thrice.low, thrice.high) == pytest.approx(
        (once.value, once.low, once.high)
    )


def test_risks_of_different_folds_are_not_compared():
    event, time, risk = survival(2)
    parts = (np.arange(150) % 5)[None]
    kept = survival_scores(Predictions.of_survival(event, time, risk, parts))
    moved = survival_scores(Predictions.of_survival(event, time, risk + 100 * parts[0], parts))
    assert moved == kept
    pooled = survival_scores(Predictions.of_survival(event, time, risk + 100 * parts[0]))
    assert pooled.concordance.value < kept.concordance.value - 0.05


def test_without_pairs_there_is_no_concordance():
    found = survival_scores(Predictions.of_survival([False, True], [1.0, 2.0], [0.5, 0.1]))
    assert found.n_events == 1
    assert found.concordance.value is None
