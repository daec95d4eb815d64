"""With few samples and many features `fit` solves for the network in closed form by default."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import GridSearchCV

from ratoon import SparseMLPClassifier, SparseMLPRegressor, SparseMLPSurvival, load
from ratoon.committee.fit import mixture_shares
from ratoon.datasets import make_microarray
from ratoon.errors import InvalidInputError, InvalidParameterError


@pytest.fixture(scope="module")
def wide():
    data, _ = make_microarray(60, 300, n_informative=40, random_state=1)
    return data.X, data.y


@pytest.fixture(scope="module")
def solved(wide):
    return SparseMLPClassifier(random_state=0).fit(*wide)


def test_wide_data_are_solved_in_closed_form_by_default(solved, wide):
    assert solved.n_iter_ == 1
    assert np.isclose(sum(solved.member_shares_.values()), 1.0)
    assert solved.score(*wide) > 0.95
    held_out = np.argmax(solved.cross_validated_outputs_, axis=1)
    assert np.mean(held_out == wide[1]) > 0.6, "from members that had not seen the sample"


def test_a_training_and_its_reason_are_reported(wide, solved):
    assert solved.solver_ == "closed form"
    assert (
        str(solved.report_).count("solved in closed form, because there are few samples (60)") == 1
    )
    model = SparseMLPClassifier(max_iter=1, random_state=0).fit(*wide)
    assert model.solver_ == "adam"
    assert not hasattr(model, "member_shares_")
    assert "trained for 1 epoch with Adam" in str(model.report_)
    assert "because `max_iter` was set" in str(model.report_)


def test_validation_data_are_scored_in_closed_form_too(wide):
    x, y = wide
    model = SparseMLPClassifier(solver="ridge", random_state=0).fit(x[:40], y[:40], eval_set=(x, y))
    assert model.validation_scores_ == [model.score(x, y)]


def test_the_closed_form_refuses_a_single_epoch(wide):
    model = SparseMLPClassifier(solver="ridge", random_state=0)
    with pytest.raises(InvalidParameterError, match="`partial_fit` trains for one epoch"):
        model.partial_fit(*wide)


def test_a_search_over_solvers_compares_closed_form_and_training(wide):
    grid = {"solver": ["ridge", "sgd", "auto"]}
    search = GridSearchCV(SparseMLPClassifier(random_state=0), grid, cv=2, error_score="raise")
    search.fit(*wide)
    assert search.cv_results_["mean_test_score"][0] == search.cv_results_["mean_test_score"][2]


def test_the_same_seed_gives_the_same_network(solved, wide):
    again = SparseMLPClassifier(random_state=0).fit(*wide)
    assert_array_equal(again.predict_proba(wide[0]), solved.predict_proba(wide[0]))


def test_a_solved_network_is_saved_and_loaded(solved, wide, tmp_path):
    solved.save(tmp_path / "model.ratoon")
    loaded = load(tmp_path / "model.ratoon")
    assert_array_equal(loaded.predict_proba(wide[0]), solved.predict_proba(wide[0]))
    assert "connections" in str(loaded.report_)


def test_a_sample_of_weight_zero_has_no_effect(wide):
    x, y = wide
    weights = np.r_[np.ones(50), np.zeros(10)]
    with_zeros = SparseMLPClassifier(random_state=0).fit(x, y, sample_weight=weights)
    without = SparseMLPClassifier(random_state=0).fit(x[:50], y[:50])
    # Same folds, same draws; only sums run over more terms.
    assert_allclose(with_zeros.predict_proba(x), without.predict_proba(x), atol=1e-4)


@pytest.fixture(scope="module")
def texts():
    """Counts of words, most of them absent, some telling the class."""
    rng = np.random.default_rng(0)
    y = np.arange(90) % 2
    rate = np.full((90, 400), 0.15)
    rate[:, :20] += 0.4 * y[:, None]
    return scipy.sparse.csr_array(rng.poisson(rate).astype(float)), y


def test_sparse_samples_are_solved_in_closed_form_and_stay_sparse(texts):
    x, y = texts
    dense = SparseMLPClassifier(random_state=0).fit(x[:60].toarray(), y[:60])
    model = SparseMLPClassifier(random_state=0).fit(x[:60], y[:60])
    assert model.member_shares_.keys() == dense.member_shares_.keys()
    assert model.network_.scaling.shift is None, "zeros are read as zeros"
    fresh = x[60:]
    assert (model.predict(fresh) == y[60:]).mean() > 0.8
    same = model.predict(fresh) == dense.predict(fresh.toarray())
    assert same.mean() > 0.9, "clipped around 0 instead of the mean, nothing else"
    assert_allclose(model.predict_proba(fresh), model.predict_proba(fresh.toarray()), atol=1e-4)


def test_training_on_sparse_samples_can_continue_from_a_solved_network(texts):
    x, y = texts
    model = SparseMLPClassifier(random_state=0).fit(x, y).partial_fit(x, y)
    assert model.n_iter_ == 2


def test_a_sparse_matrix_too_wide_for_a_linear_path_is_trained(texts, monkeypatch):
    monkeypatch.setattr("ratoon.committee.problem.MAX_SPARSE_FEATURES", 300)
    model = SparseMLPClassifier(random_state=0).fit(*texts)
    assert model.n_iter_ > 1


def test_a_continuous_target_is_solved_in_closed_form():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((80, 200))
    y = x[:, :5].sum(axis=1) + 0.1 * rng.standard_normal(80)
    model = SparseMLPRegressor(random_state=0).fit(x[:60], y[:60])
    assert hasattr(model, "member_shares_")
    assert model.score(x[60:], y[60:]) > 0.5


def test_training_can_continue_from_a_solved_network(wide):
    model = SparseMLPClassifier(random_state=0).fit(*wide)
    model.partial_fit(*wide)
    assert model.n_iter_ == 2
    assert model.solver_ == "adam"
    assert "solved in closed form, then trained for 1 epoch with Adam" in str(model.report_)
    model.partial_fit(*wide)
    assert "then trained for 2 epochs" in str(model.report_)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("size", [1e-40, 1e-30, 1e30])
@pytest.mark.parametrize("weights", [None, [0, 0, 0]])
def test_features_of_extreme_size_are_solved_for(size, weights):
    X = np.random.default_rng(0).normal(size=(30, 120)) * size
    weights = None if weights is None else np.r_[weights, np.ones(27)]
    model = SparseMLPClassifier(solver="ridge", random_state=0)
    model.fit(X, np.arange(30) % 2, sample_weight=weights)
    assert model.network_.is_finite()
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_decomposition_that_fails_is_an_error_with_advice(monkeypatch):
    def fail(matrix, **given):
        raise np.linalg.LinAlgError("leading minor not positive definite")

    monkeypatch.setattr(scipy.linalg, "cho_factor", fail)
    X = np.random.default_rng(0).normal(size=(30, 120))
    with pytest.raises(InvalidInputError, match='set `solver="sgd"`'):
        SparseMLPClassifier(solver="ridge").fit(X, np.arange(30) % 2)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [SparseMLPClassifier, SparseMLPRegressor])
def test_sample_weights_whose_sum_overflows_are_an_error_with_advice(make):
    X = np.random.default_rng(0).normal(size=(30, 120))
    with pytest.raises(InvalidInputError, match="sample weights differ by too many"):
        make().fit(X, np.arange(30) % 2, np.full(30, 1e308))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("make", "y"),
    [
        (SparseMLPClassifier, np.arange(30) % 2),
        (SparseMLPRegressor, np.arange(30.0)),
        (SparseMLPSurvival, np.c_[np.arange(1.0, 31.0), np.arange(30) % 2]),
    ],
)
@pytest.mark.parametrize("scale", [1e38, 1e30])
def test_values_whose_differences_overflow_are_an_error_with_advice(make, y, scale):
    X = scale * np.sign(np.random.default_rng(0).normal(size=(30, 120)))
    if scale < 1e37:
        assert np.isfinite(np.asarray(make(random_state=0).fit(X, y).predict(X))).all()
        return
    with pytest.raises(InvalidInputError, match="no finite solution"):
        make(random_state=0).fit(X, y)


def test_errors_that_are_not_finite_have_no_mixture():
    with pytest.raises(np.linalg.LinAlgError):
        mixture_shares(np.full((2, 2), np.nan), np.ones(2), 1.0)


def test_a_division_by_zero_is_an_error_with_advice(monkeypatch):
    def fail(problem, seed):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")

    monkeypatch.setattr("ratoon.estimators.closed_form.fit_committee", fail)
    X = np.random.default_rng(0).normal(size=(30, 120))
    with pytest.raises(InvalidInputError, match="no finite solution"):
        SparseMLPClassifier().fit(X, np.arange(30) % 2)
