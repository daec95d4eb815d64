"""Smaller copies of models: what is removed, what stays, and what is reported."""

import numpy as np
import pytest

import ratoon
from ratoon import SparseMLPClassifier, SparseMLPRegressor
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.export import compare_slim, slim

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 12))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)
HOW = {"hidden_layer_sizes": (60, 40), "density": 0.2, "max_iter": 20, "random_state": 0}


@pytest.fixture(scope="module")
def model():
    return SparseMLPClassifier(**HOW).fit(X, Y)


def test_the_weakest_connections_of_every_layer_are_removed(model):
    small = slim(model, prune=0.25)
    for before, after in zip(model.network_.layers, small.network_.layers, strict=True):
        kept = dict(zip(after.topology.positions.tolist(), after.weights.tolist(), strict=True))
        whole = dict(zip(before.topology.positions.tolist(), before.weights.tolist(), strict=True))
        assert kept.items() <= whole.items()
        assert len(kept) <= np.ceil(0.75 * len(whole))
    last, pruned = model.network_.layers[-1], small.network_.layers[-1]
    assert np.abs(pruned.weights).min() >= np.quantile(np.abs(last.weights), 0.2)


def test_removing_connections_that_lead_nowhere_changes_nothing(model):
    small = slim(model)
    assert small.network_.n_connections < model.network_.n_connections
    np.testing.assert_array_equal(small.predict_proba(X), model.predict_proba(X))


def test_the_model_itself_does_not_change(model):
    before = model.network_.n_connections, model.predict_proba(X)
    slim(model, prune=0.9, weights="bfloat16").partial_fit(X, Y)
    assert model.network_.n_connections == before[0]
    np.testing.assert_array_equal(model.predict_proba(X), before[1])
    assert model.dtype == "auto"


@pytest.mark.parametrize("weights", [None, "bfloat16"])
def test_a_slim_model_is_saved_and_loaded(model, weights, tmp_path):
    small = slim(model, prune=0.5, weights=weights)
    small.save(tmp_path / "small")
    model.save(tmp_path / "whole", optimizer=False)
    again = ratoon.load(tmp_path / "small")
    np.testing.assert_array_equal(again.predict_proba(X), small.predict_proba(X))
    assert (tmp_path / "small").stat().st_size < (tmp_path / "whole").stat().st_size
    again.partial_fit(X, Y)
    assert again.network_.n_connections == small.network_.n_connections


def test_training_further_regains_what_pruning_lost(model):
    small = slim(model, prune=0.6)
    before = small.score(X, Y)
    small.set_params(evolution="static")
    for _ in range(20):
        small.partial_fit(X, Y)
    assert small.score(X, Y) > before


def test_early_stopping_and_closed_form_models_can_be_slimmed():
    for how in ({**HOW, "early_stopping": True}, {"random_state": 0}):
        fitted = SparseMLPClassifier(**how).fit(X[:60], Y[:60])
        small = slim(fitted, prune=0.1)
        assert small.score(X[:60], Y[:60]) > 0.5
        assert small.validation_scores_ == fitted.validation_scores_


def test_the_comparison_has_a_row_for_every_combination(model):
    rows = compare_slim(model, X, Y, prune=(0.0, 0.5))
    assert [(row.prune, row.weights) for row in rows] == [
        (0.0, None),
        (0.5, None),
        (0.0, "bfloat16"),
        (0.5, "bfloat16"),
    ]
    assert rows[0].agreement == 1.0
    assert rows[0].score == model.score(X, Y)
    assert rows[1].n_connections < rows[0].n_connections
    assert rows[2].file_bytes < rows[0].file_bytes


def test_a_regressor_is_compared_by_the_distance_of_its_predictions():
    fitted = SparseMLPRegressor(**HOW).fit(X, X[:, 0])
    whole, half = compare_slim(fitted, X, X[:, 0], prune=(0.0, 0.5), weights=(None,))
    assert whole.agreement == 1.0 > half.agreement


@pytest.mark.parametrize(
    ("arguments", "error"),
    [({"prune": 1.0}, InvalidParameterError), ({"weights": "int8"}, InvalidParameterError)],
)
def test_other_arguments_are_refused(model, arguments, error):
    with pytest.raises(error):
        slim(model, **arguments)


def test_only_fitted_models_can_be_slimmed():
    with pytest.raises(InvalidInputError, match="fitted"):
        slim(SparseMLPClassifier())
