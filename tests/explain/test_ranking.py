"""Statistics of features, and the one ranking that is made of them."""

import importlib

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_selection import f_classif, f_regression

from ratoon import SparseMLPClassifier, SparseMLPRegressor, load
from ratoon.datasets import Dataset, make_microarray
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.explain import adjusted, associations, feature_strength, relative_strength
from ratoon.samples.in_memory import wrap

RNG = np.random.default_rng(0)
X = RNG.normal(5.0, 2.0, size=(60, 30))
X[:, 7] = 3.0
CODES = RNG.integers(0, 3, 60)
X[CODES == 2, 4] += 6.0
ONE_HOT = np.eye(3)[CODES]
VARIES = np.arange(30) != 7


def of_classes(x=X, weights=None):
    return associations(wrap(x), ONE_HOT, weights, CODES, seed=0)


def test_f_and_its_p_values_are_those_of_an_analysis_of_variance():
    found = of_classes()
    f, p = f_classif(X[:, VARIES], CODES)
    assert_allclose(found.f[VARIES], f, rtol=1e-5)
    assert_allclose(found.p_values[VARIES], p, rtol=1e-4)
    assert_allclose(found.fdr, scipy.stats.false_discovery_control(found.p_values))


def test_for_numbers_f_is_that_of_a_regression_and_the_difference_its_slope():
    y = X[:, 3] * 2.0 + RNG.normal(size=60)
    found = associations(wrap(X), y[:, None], None, None, seed=0)
    assert_allclose(found.f[VARIES], f_regression(X[:, VARIES], y)[0], rtol=1e-4)
    assert_allclose(found.difference[3], scipy.stats.linregress(X[:, 3], y).slope, rtol=1e-5)
    assert found.highest[3] == 1
    assert found.signed(None)[3] == pytest.approx(np.sqrt(found.f[3]))


def test_a_constant_feature_has_no_statistic():
    found = of_classes()
    assert (found.f[7], found.difference[7], found.highest[7], found.p_values[7]) == (0, 0, -1, 1)


def test_for_several_classes_the_highest_is_compared_with_the_rest():
    found = of_classes()
    assert found.highest[4] == 2
    expected = X[CODES == 2, 4].mean() - X[CODES != 2, 4].mean()
    assert_allclose(found.difference[4], expected, rtol=1e-5)


def test_for_two_classes_the_difference_is_second_minus_first_and_t_has_its_sign():
    two = CODES != 1
    codes = (CODES[two] == 2).astype(int)
    found = associations(wrap(X[two]), np.eye(2)[codes], None, codes, seed=0)
    t = scipy.stats.ttest_ind(X[two][codes == 1][:, VARIES], X[two][codes == 0][:, VARIES])
    assert_allclose(found.signed(2)[VARIES], t.statistic, rtol=1e-4)
    expected = X[two][codes == 1].mean(axis=0) - X[two][codes == 0].mean(axis=0)
    assert_allclose(found.difference, expected, atol=1e-5)


def test_sparse_samples_have_the_statistics_of_dense_ones():
    x = np.where(X > 6, X, 0.0)
    dense, sparse = of_classes(x), of_classes(scipy.sparse.csr_array(x))
    for name in ("f", "difference", "highest"):
        assert_allclose(getattr(sparse, name), getattr(dense, name), rtol=1e-4, atol=1e-6)


def test_rows_of_weight_0_do_not_count_and_units_do_not_matter():
    weights = np.ones(60)
    weights[:20] = 0.0
    part = associations(wrap(X[20:]), ONE_HOT[20:], None, CODES[20:], seed=0)
    found = of_classes(weights=weights)
    assert_allclose(found.f, part.f, rtol=1e-6)
    assert (found.n_rows, found.n_available) == (40, 40)
    assert_allclose(of_classes(X * 1e-9).f, of_classes().f, rtol=1e-4)


def test_of_many_rows_a_fixed_number_is_sampled(monkeypatch):
    monkeypatch.setattr(importlib.import_module("ratoon.explain.associations"), "MAX_ROWS", 40)
    found = of_classes()
    assert (found.n_rows, found.n_available) == (40, 60)
    assert_array_equal(found.f, of_classes().f)


def test_adjusted_p_values_of_nothing_are_nothing():
    assert adjusted(np.zeros(0)).size == 0


# ------------------------------------------------------------------------------- of a model


@pytest.fixture(scope="module")
def genes():
    return make_microarray(60, 400, 2, 20, effect=3.0, random_state=0)


@pytest.fixture(scope="module")
def fitted(genes):
    return SparseMLPClassifier(random_state=0).fit(genes[0])


def test_importances_are_weights_times_the_root_of_1_plus_f(genes, fitted):
    data, informative = genes
    f = f_classif(data.X.astype(np.float64), data.y)[0]
    expected = relative_strength(feature_strength(fitted.network_) * np.sqrt(1 + f / 5))
    assert_allclose(fitted.feature_importances_, expected, rtol=1e-3)
    assert_array_equal(fitted.ranking_.importance, fitted.feature_importances_)
    assert np.isin(fitted.ranking_.order[:20], informative).mean() >= 0.8


def test_a_ranking_has_statistics_and_directions_of_the_training_rows(genes, fitted):
    data, _ = genes
    ranking = fitted.ranking_
    assert ranking.rows == "on 60 training rows"
    assert ranking.statistic_name == "t"
    row = ranking.top(1)[0]
    j = data.feature_names.index(row["feature"])
    means = [data.X[data.y == code, j].mean() for code in (0, 1)]
    assert_allclose(row["difference"], means[1] - means[0], rtol=1e-4)
    assert row["direction"] == f"highest in {data.class_names[int(np.argmax(means))]}"
    assert row["fdr"] < 0.01
    assert ranking.difference_name == "mean of {1} minus mean of {0}".format(*data.class_names)


def test_a_frame_has_one_row_per_feature(fitted):
    frame = fitted.ranking_.to_frame()
    assert len(frame) == 400
    assert frame.index[0] == 1
    assert frame["importance"].is_monotonic_decreasing


def test_a_ranking_survives_a_file(tmp_path, fitted):
    fitted.save(tmp_path / "m.ratoon")
    again = load(tmp_path / "m.ratoon")
    assert again.ranking_.top(5) == fitted.ranking_.top(5)
    assert again.ranking_.rows == fitted.ranking_.rows


def test_a_ranking_on_other_rows_says_so(genes, fitted):
    data, _ = genes
    part = data.take(np.arange(30))
    ranking = fitted.rank_features(part)
    assert ranking.rows == "on the 30 rows given"
    f = f_classif(part.X.astype(np.float64), part.y)[0]
    assert_allclose(ranking.statistics.f, f, rtol=1e-3, atol=1e-6)


def test_without_statistics_the_ranking_is_by_weights_and_says_why():
    x = RNG.normal(size=(90, 8))
    y = (x[:, 0] > 0).astype(int)
    model = SparseMLPClassifier((20,), random_state=0)
    model.partial_fit(x, y, classes=np.unique(y))
    assert "partial_fit" in model.ranking_.rows
    assert_allclose(model.feature_importances_, relative_strength(model.feature_strength()))
    assert set(model.ranking_.top(1)[0]) == {"rank", "feature", "importance"}


def test_a_new_fit_replaces_statistics_and_held_out_rows_do_not_count():
    x = RNG.normal(size=(200, 4))
    y = np.where(x[:, 0] > 0, "a", "b")
    model = SparseMLPClassifier((8,), max_iter=3, early_stopping=True, random_state=0).fit(x, y)
    assert model.ranking_.rows == "on 180 training rows"
    model.set_params(early_stopping=False).fit(x[:50], y[:50])
    assert model.ranking_.rows == "on 50 training rows"


def test_several_targets_have_f_but_no_direction():
    x = X[:, VARIES]
    y = x[:, :2]
    model = SparseMLPRegressor((8,), max_iter=2, random_state=0).fit(x, y)
    row = model.ranking_.select([0])[0]
    assert row["direction"] == ""
    assert row["p_value"] < 1e-10


def test_impossible_numbers_and_samples_are_refused(fitted, genes):
    with pytest.raises(InvalidParameterError, match="`k` must be"):
        fitted.ranking_.top(-1)
    data = genes[0]
    with pytest.raises(InvalidInputError, match="requires y"):
        fitted.rank_features(Dataset(data.X, feature_names=data.feature_names))
