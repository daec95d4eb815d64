"""Above the size of the closed form, a network in closed form is one of those that are averaged."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ratoon import SparseMLPClassifier, SparseMLPRegressor, load
from ratoon.committee import Problem, fit_committee
from ratoon.committee.members import MemberKind
from ratoon.estimators import averaged, settings, solved
from ratoon.estimators.recipes import recipes
from ratoon.estimators.solved import NAME
from ratoon.kernels import Scaling

ROWS = 700


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """700 rows are many, and trained networks are linear."""
    monkeypatch.setattr(settings, "suits", lambda *shape: False)
    monkeypatch.setattr(solved, "MOST_ROWS", 560)
    monkeypatch.setattr(averaged, "recipes", lambda shape: recipes(shape)[-1:])


@pytest.fixture(scope="module")
def products():
    """Features that only matter as a product, among noise."""
    x = np.random.default_rng(0).normal(size=(1000, 100)).astype(np.float32)
    return x, np.where(x[:, 3] * x[:, 8] > 0, "same", "other")


@pytest.fixture
def model(products):
    x, y = products
    return SparseMLPClassifier(random_state=0).fit(x[:ROWS], y[:ROWS])


def test_products_of_features_are_found(model, products):
    x, y = products
    assert model.score(x[ROWS:], y[ROWS:]) > 0.85, "a linear network is right half of the time"
    assert model.member_shares_[NAME] > 0.1
    assert np.isclose(sum(model.member_shares_.values()), 1.0)


def test_what_was_done_is_reported(model):
    assert model.settings_.averages
    assert model.settings_.n_solved == 1
    assert "solved for 1 network in closed form, because there are 700" in str(model.report_)
    assert model.settings_.hidden_layer_sizes == model.network_.widths[1:-1]
    assert model.history_[-1].n_connections == model.network_.n_connections


def test_files_and_threads_change_nothing(model, products, tmp_path):
    x, y = products
    model.save(tmp_path / "model.ratoon")
    loaded = load(tmp_path / "model.ratoon")
    assert_array_equal(loaded.predict_proba(x), model.predict_proba(x))
    assert loaded.settings_ == model.settings_
    assert str(loaded.report_) == str(model.report_)
    again = SparseMLPClassifier(random_state=0, n_jobs=2).fit(x[:ROWS], y[:ROWS])
    assert_array_equal(again.predict_proba(x), model.predict_proba(x))
    widths = loaded.network_.widths
    assert loaded.partial_fit(x, y).network_.widths == widths


def test_rows_that_weigh_it_were_not_seen(products):
    x, y = products
    y = np.random.default_rng(1).permutation(y[:ROWS])
    fitted = SparseMLPClassifier(random_state=0).fit(x[:ROWS], y)
    outputs = fitted.cross_validated_outputs_
    seen = np.isfinite(outputs).all(axis=1)
    right = fitted.classes_[outputs[seen].argmax(axis=1)] == y[seen]
    assert 0.35 < right.mean() < 0.65, "labels are random"


@pytest.mark.parametrize("unit", ["z-scores", "pixels"])
def test_the_merged_network_has_the_weighed_outputs(products, monkeypatch, unit):
    """With one network of a kind, all of them hold back the same rows."""
    x, _ = products
    y = (3 * x[:, 3] * x[:, 8] + x[:, 10:60].sum(axis=1) > 0).astype(int)
    if unit == "pixels":
        x = np.clip(100 + 50 * x, 0, 255).astype(np.uint8)
        x[:2] = [[0], [255]]
    monkeypatch.setattr(averaged, "WORK", 1.0)
    fitted = SparseMLPClassifier(random_state=0).fit(x[:ROWS], y[:ROWS])
    assert fitted.settings_.scale == ("global" if unit == "pixels" else "standard")
    assert 0 < fitted.member_shares_[NAME] < 1
    assert fitted.settings_.n_networks == 2
    assert "trained 1 network with SGD and solved for 1 network" in str(fitted.report_)
    expected = fitted.cross_validated_outputs_
    held = np.flatnonzero(np.isfinite(expected).all(axis=1))
    assert held.size == ROWS / averaged.N_PARTS
    assert_allclose(fitted.network_.outputs(x[held]), expected[held], atol=1e-4)


def test_regression(products):
    x, _ = products
    y = 100 + x[:, 3] * x[:, 8]
    fitted = SparseMLPRegressor(random_state=0).fit(x[:ROWS], y[:ROWS])
    assert fitted.member_shares_[NAME] > 0.7
    assert fitted.score(x[ROWS:], y[ROWS:]) > 0.5


def test_a_network_that_is_no_help_is_left_out(products):
    x, _ = products
    y = (x.sum(axis=1) > 0).astype(int)
    fitted = SparseMLPClassifier(random_state=0).fit(x[:ROWS], y[:ROWS])
    assert fitted.member_shares_ == {"linear": 1.0, NAME: 0.0}
    assert fitted.settings_.n_solved == 0
    assert len(fitted.network_.layers) == 1
    assert "closed form" not in str(fitted.report_)


def test_many_targets_and_weights(products):
    x, y = products
    many = SparseMLPRegressor(random_state=0).fit(x[:ROWS], x[:ROWS, :11])
    assert NAME not in many.member_shares_, "every target has features of its own"
    weights = np.ones(ROWS)
    weights[600:] = 0
    fitted = SparseMLPClassifier(random_state=0).fit(x[:ROWS], y[:ROWS], sample_weight=weights)
    without = SparseMLPClassifier(random_state=0).fit(x[:600], y[:600])
    assert fitted.member_shares_[NAME] > 0
    assert_allclose(fitted.predict_proba(x), without.predict_proba(x), atol=1e-5)


def test_a_group_is_held_back_as_a_whole(products):
    x, y = products
    groups = np.repeat(np.arange(70), 10)
    fitted = SparseMLPClassifier(random_state=0).fit(x[:ROWS], y[:ROWS], groups=groups)
    assert fitted.member_shares_[NAME] > 0
    seen = np.isfinite(fitted.cross_validated_outputs_).all(axis=1).reshape(70, 10)
    assert_array_equal(seen.all(axis=1), seen.any(axis=1))


def test_progress_is_printed(products, capsys):
    x, y = products
    SparseMLPClassifier(random_state=0, verbose=1).fit(x[:ROWS], y[:ROWS])
    assert "closed form with 560 rows: validation score 0." in capsys.readouterr().err


def test_a_problem_without_a_solution_is_left_out(products, monkeypatch):
    def fails(*given, **named):
        raise np.linalg.LinAlgError

    monkeypatch.setattr("ratoon.estimators.closed_form.fit_committee", fails)
    x, y = products
    fitted = SparseMLPClassifier(random_state=0).fit(x[:ROWS], y[:ROWS])
    assert fitted.member_shares_ == {"linear": 1.0}


def test_a_committee_of_some_members_reads_features_as_given(products):
    x, y = products
    x = x[:ROWS]
    codes = (y[:ROWS] == "same").astype(np.int64)
    problem = Problem(x, 2.0 * np.eye(2)[codes] - 1, np.ones(ROWS), codes, "softmax")
    scaling = Scaling(np.full(100, 0.5), np.full(100, 0.25), 0.0)

    def is_pairs(kind: MemberKind) -> bool:
        return kind.model == "pairs"

    committee = fit_committee(problem, 0, scaling=scaling, candidates=is_pairs)
    assert committee.shares == {"pairs": 1.0}
    assert_allclose(committee.network.scaling.shift, scaling.shift)
    assert_allclose(committee.network.scaling.scale, scaling.scale)
    assert committee.network.scaling.clip == 0.0
