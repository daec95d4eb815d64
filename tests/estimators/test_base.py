import os
import pickle
import signal
import threading

import joblib
import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ratoon
from ratoon import SparseMLPClassifier, SparseMLPRegressor
from ratoon.errors import DivergenceError, InvalidInputError, InvalidParameterError
from ratoon.evolution import SET
from ratoon.optimizers import SGD
from ratoon.training import Callback

SETTINGS = [
    {},
    {"evolution": "set", "density": 0.3},
    {"solver": "sgd", "batch_size": 7, "dropout": 0.3, "learning_rate": "step"},
    {"solver": SGD(momentum=0.0), "density": 0.5, "class_weight": "balanced"},
    {"batch_size": 16, "shuffle": False, "warm_up": 0.5, "dtype": "float32"},
    {"early_stopping": True, "n_iter_no_change": 20},
]


def small(**parameters):
    return SparseMLPClassifier((20,), **{"max_iter": 6, "random_state": 0, **parameters})


# ------------------------------------------------------------------------- one epoch at a time


@pytest.mark.parametrize("settings", SETTINGS)
def test_fit_is_as_many_calls_of_partial_fit_to_the_bit(two_classes, settings, equal_networks):
    X, y = two_classes
    eval_set = (X[:20], y[:20]) if "early_stopping" in settings else None
    at_once = small(**settings).fit(X, y, eval_set=eval_set)
    stepwise = small(**settings)
    for _ in range(6):
        stepwise.partial_fit(X, y, eval_set=eval_set)

    assert equal_networks(at_once.network_, stepwise.network_)
    assert at_once.loss_curve_ == stepwise.loss_curve_
    assert at_once.validation_scores_ == stepwise.validation_scores_
    assert at_once.best_iteration_ == stepwise.best_iteration_
    np.testing.assert_array_equal(at_once.predict_proba(X), stepwise.predict_proba(X))


def test_a_regressor_fitted_epoch_by_epoch_is_the_same_too(two_classes, equal_networks):
    X, _ = two_classes
    at_once = SparseMLPRegressor((20,), max_iter=4, random_state=0).fit(X, X[:, :2])
    stepwise = SparseMLPRegressor((20,), max_iter=4, random_state=0)
    for _ in range(4):
        stepwise.partial_fit(X, X[:, :2])
    assert equal_networks(at_once.network_, stepwise.network_)


def test_partial_fit_continues_beyond_max_iter_with_a_new_cycle(two_classes):
    X, y = two_classes
    model = small(max_iter=3, learning_rate="cosine")
    for _ in range(7):
        model.partial_fit(X, y)
    rates = model.history_.column("learning_rate")
    assert model.n_iter_ == 7
    assert model.history_.column("epoch") == list(range(7))
    assert rates[:3] == rates[3:6]
    assert rates[6] == rates[0]


def test_warm_start_continues_where_the_last_fit_ended(two_classes):
    X, y = two_classes
    model = small(warm_start=True, max_iter=30).fit(X, y)
    first = model.loss_
    model.fit(X, y)
    assert model.n_iter_ == 60
    assert model.loss_ < first
    assert model.loss_curve_[30] < model.loss_curve_[0]


def test_fit_without_warm_start_discards_the_last_fit(two_classes, equal_networks):
    X, y = two_classes
    model = small().fit(X, y)
    first = model.network_
    assert equal_networks(model.fit(X, y).network_, first)
    assert model.n_iter_ == 6


# --------------------------------------------------------------------------------- determinism


@pytest.mark.parametrize("settings", [{}, {"batch_size": 5, "learning_rate_init": 0.01}])
def test_the_number_of_threads_changes_no_bit(rng, settings, equal_networks):
    X = rng.normal(size=(40, 3000)).astype(np.float32)
    y = rng.integers(3, size=40)
    one, two = (
        SparseMLPClassifier(
            (2000, 500), epsilon=20, max_iter=3, random_state=0, n_jobs=n_jobs, **settings
        ).fit(X, y)
        for n_jobs in (1, 2)
    )
    assert equal_networks(one.network_, two.network_)
    assert one.predict_proba(X).tobytes() == two.predict_proba(X).tobytes()


def test_predictions_do_not_depend_on_other_samples_of_the_batch(two_classes):
    X, y = two_classes
    model = small().fit(X, y)
    alone = np.vstack([model.decision_function(row[None]) for row in X]).ravel()
    np.testing.assert_array_equal(model.decision_function(X), alone)


def test_weight_k_is_the_same_as_k_copies(rng):
    X = rng.normal(size=(15, 6))
    y = rng.integers(3, size=15)
    counts = rng.integers(1, 4, size=15)
    weighted = SparseMLPClassifier(random_state=0).fit(X, y, sample_weight=counts)
    repeated = SparseMLPClassifier(random_state=0).fit(X.repeat(counts, axis=0), y.repeat(counts))
    # Double precision, and a few hundred steps that round differently.
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-9)


def test_the_call_of_the_readme_works_as_written(rng):
    X = rng.normal(size=(20, 2000)).astype(np.float32)
    model = SparseMLPClassifier(
        hidden_layer_sizes=(9000, 9000),
        epsilon=10,
        zeta=0.3,
        batch_size=5,
        learning_rate_init=0.01,
        momentum=0.9,
        max_iter=100,
        early_stopping=False,
        n_jobs=2,
        random_state=0,
    )
    model.set_params(max_iter=2).fit(X, rng.integers(3, size=20))
    assert [layer.n_connections for layer in model.network_.layers] == [110_000, 180_000, 27_000]
    assert model.network_.dtype == np.float32


# -------------------------------------------------------------------------------- interruptions


class InterruptAfter(Callback):
    def __init__(self, n_epochs):
        self.n_epochs = n_epochs

    def on_epoch_end(self, training, record):
        if record.epoch + 1 == self.n_epochs:
            raise KeyboardInterrupt


def test_ctrl_c_leaves_what_was_learnt(two_classes, equal_networks):
    X, y = two_classes
    model = small(callbacks=InterruptAfter(2))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.n_iter_ == 2
    assert model.predict(X).shape == (90,)
    # and training can continue from there, to the same result
    model.callbacks = None
    for _ in range(4):
        model.partial_fit(X, y)
    assert equal_networks(model.network_, small().fit(X, y).network_)


class PressCtrlC(Callback):
    """Not by the clock from the outside: before its first epoch a fit takes as long as it takes."""

    def on_fit_begin(self, training):
        self.timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
        self.timer.start()


def test_a_signal_within_an_epoch_interrupts_it(rng):
    X = rng.normal(size=(400, 3000)).astype(np.float32)
    y = rng.integers(2, size=400)
    how = {"epsilon": 20, "batch_size": 1, "learning_rate_init": 1e-4, "n_jobs": 1}
    model = SparseMLPClassifier((3000, 3000), callbacks=PressCtrlC(), **how)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.predict(X[:2]).shape == (2,)


def test_divergence_raises_an_error_and_leaves_no_network_of_nan(rng):
    X = rng.normal(size=(60, 5))
    model = SparseMLPRegressor((50, 50), learning_rate_init=1e6, solver="sgd", dtype="float32")
    with pytest.raises(DivergenceError, match="learning rate"):
        model.fit(X, X[:, 0])
    with pytest.raises(NotFittedError):
        model.predict(X)


class DivergeAfter(InterruptAfter):
    def on_epoch_end(self, training, record):
        if record.epoch + 1 == self.n_epochs:
            training.network.layers[0].weights[:] = np.nan
            raise DivergenceError("on purpose")


def test_divergence_after_a_best_epoch_keeps_that_network(two_classes):
    X, y = two_classes
    model = small(callbacks=DivergeAfter(3), early_stopping=True)
    with pytest.raises(DivergenceError):
        model.fit(X, y, eval_set=(X, y))
    assert model.network_.is_finite()
    assert model.score(X, y) == max(model.validation_scores_)


def test_weights_that_overflow_in_the_last_step_are_an_error(two_classes):
    class Spoil(Callback):
        def on_fit_end(self, training):
            training.network.layers[0].weights[0] = np.inf

    with pytest.raises(DivergenceError, match="after the last step"):
        small(callbacks=Spoil()).fit(*two_classes)


def test_a_failed_fit_leaves_the_estimator_unfitted(two_classes):
    X, y = two_classes
    model = small().fit(X, y)
    with pytest.raises(InvalidParameterError):
        model.set_params(epsilon=1e-8).fit(X, y + 5)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_layers_can_have_more_positions_than_32_bits_can_count(rng):
    X = rng.normal(size=(4, 200_000)).astype(np.float32)
    model = SparseMLPClassifier((200_000,), epsilon=0.1, max_iter=2, random_state=0)
    model.fit(X, [0, 1, 0, 1])
    assert model.network_.layers[0].topology.n_positions == 40_000_000_000
    assert model.network_.layers[0].n_connections == 40_000


# ------------------------------------------------------------------------- validation, stopping


def test_early_stopping_keeps_the_best_network(rng):
    X = rng.normal(size=(150, 10))
    y = (X[:, 0] + rng.normal(size=150) > 0).astype(int)
    model = SparseMLPClassifier((50,), early_stopping=True, max_iter=200, random_state=0).fit(X, y)
    scores = model.validation_scores_
    assert model.n_iter_ < 200
    assert model.best_iteration_ == int(np.argmax(scores))
    assert model.n_iter_ == model.best_iteration_ + 1 + 10


def test_the_score_of_the_kept_network_is_the_best_one(two_classes):
    X, y = two_classes
    y = np.where(np.arange(90) % 5 == 0, 1 - y, y)  # with wrong labels the score falls again
    eval_set = (X[60:], y[60:])
    how = {"learning_rate_init": 0.05, "max_iter": 40, "n_iter_no_change": 20}
    model = small(early_stopping=True, **how).fit(X[:60], y[:60], eval_set=eval_set)
    assert model.score(*eval_set) == max(model.validation_scores_)
    assert model.validation_scores_[-1] < max(model.validation_scores_)


def test_an_eval_set_is_scored_even_without_early_stopping(two_classes):
    X, y = two_classes
    model = small().fit(X, y, eval_set=[(X, y)])
    assert model.validation_scores_[-1] == model.score(X, y)
    assert model.history_[-1].validation_loss > 0
    assert small().fit(X, y).validation_scores_ is None


def test_held_out_rows_do_not_affect_the_scaling(rng):
    X = rng.normal(size=(100, 3))
    y = rng.integers(2, size=100)
    held = small(early_stopping=True, validation_fraction=0.5).fit(X, y).network_.scaling.shift
    assert not np.allclose(held, X.mean(axis=0))


@pytest.mark.parametrize("how", [{}, {"start": "f"}, {"evolution": "guided_set"}], ids=str)
def test_held_out_rows_change_nothing_that_is_learnt(two_classes, equal_networks, how):
    X, y = two_classes
    held = []

    class Note(Callback):
        def on_fit_begin(self, training):
            held[:] = np.setdiff1d(np.arange(90), training.data.rows)

    how = {"restore_best": False, "density": 0.3, "callbacks": Note(), "max_iter": 6, **how}
    one = small(early_stopping=True, **how).fit(X, y)
    assert len(held) == 9
    other = X.copy()
    other[held] = 5.0 - 3.0 * other[held]
    equal_networks(one.network_, small(early_stopping=True, **how).fit(other, y).network_)


def test_partial_fit_cannot_hold_out_samples(two_classes):
    with pytest.raises(InvalidParameterError, match="needs an `eval_set"):
        small(early_stopping=True).partial_fit(*two_classes)


# --------------------------------------------------------------------------- sparse and dense


def test_a_network_of_dense_samples_reads_sparse_ones_and_the_other_way_round(two_classes):
    X, y = two_classes
    sparse = scipy.sparse.csr_array(X)
    for first, second in ((X, sparse), (sparse, X)):
        model = small(clip=1.0).fit(first, y)
        one, other = model.decision_function(first), model.decision_function(second)
        # Sparse samples are added up in another order.
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)


def test_training_on_sparse_after_dense_samples_is_refused(two_classes):
    X, y = two_classes
    model = small().fit(X, y)
    with pytest.raises(InvalidInputError, match="centres its features"):
        model.partial_fit(scipy.sparse.csr_array(X), y)
    small(scale=None).fit(X, y).partial_fit(scipy.sparse.csr_array(X), y)


def test_values_beyond_float32_are_refused(two_classes):
    X, y = two_classes
    model = small(dtype="float32").fit(X, y)
    with pytest.raises(InvalidInputError, match="not finite"):
        model.predict(X * 1e300)
    with pytest.raises(InvalidInputError, match="too large for float32"):
        small(dtype="float32").fit(X * 1e300, y)


# -------------------------------------------------------------------------------- scikit-learn


def test_it_works_in_pipeline_grid_search_and_cross_validation(two_classes):
    X, y = two_classes
    pipeline = make_pipeline(StandardScaler(), small()).fit(X, y)
    assert pipeline.predict(X).shape == (90,)
    grid = {"evolution": [SET(zeta=0.1), "static"]}
    search = GridSearchCV(small(density=0.3), grid, cv=2).fit(X, y)
    assert search.best_params_["evolution"] in grid["evolution"]
    assert cross_val_score(small(), X, y, cv=3).shape == (3,)


def test_select_from_model_finds_the_feature_that_matters(two_classes):
    X, y = two_classes
    chosen = SelectFromModel(small(max_iter=100), max_features=1).fit(X, y)
    assert chosen.get_support().tolist() == [True] + [False] * 7


def test_clones_carry_parameters_and_no_network(two_classes):
    model = small(density=0.3, evolution=SET(zeta=0.2)).fit(*two_classes)
    copy = clone(model)
    assert copy.get_params()["evolution"] == SET(zeta=0.2)
    with pytest.raises(NotFittedError):
        copy.predict(two_classes[0])


def test_pickles_predict_the_same_and_train_on_alike(two_classes, tmp_path, equal_networks):
    X, y = two_classes
    model = small().fit(X, y)
    joblib.dump(model, tmp_path / "model")
    copies = [
        pickle.loads(pickle.dumps(model)),
        joblib.load(tmp_path / "model"),
        joblib.load(tmp_path / "model", mmap_mode="r"),
    ]
    before = model.predict_proba(X)
    model.partial_fit(X, y)
    for copy in copies:
        np.testing.assert_array_equal(copy.predict_proba(X), before)
        assert equal_networks(copy.partial_fit(X, y).network_, model.network_)


def test_the_package_lists_its_estimators_and_refuses_unknown_names():
    assert "SparseMLPClassifier" in dir(ratoon)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = ratoon.Nothing


def test_verbose_shows_a_bar(two_classes, capsys):
    small(verbose=1, max_iter=2).fit(*two_classes)
    assert "loss=" in capsys.readouterr().err


def test_early_stopping_that_is_switched_off_observes_no_more_and_keeps_the_best(two_classes):
    X, y = two_classes
    model = SparseMLPClassifier((9,), early_stopping=True, max_iter=9, random_state=0)
    for _ in range(2):
        model.partial_fit(X, y, eval_set=(X, y))
    before = model._state.stopping
    seen = (before.best_epoch, before.best_score, before.n_waited)
    best = model.network_
    model.set_params(early_stopping=False)
    for _ in range(3):
        model.partial_fit(X, y, eval_set=(X, y))
    after = model._state.stopping
    assert (after.best_epoch, after.best_score, after.n_waited) == seen
    assert model.network_ is best


class Explode(Callback):
    def on_epoch_end(self, training, record):
        for layer in training.network.layers:
            layer.weights[:] = np.inf


def test_divergence_after_a_good_epoch_leaves_the_best_network_to_train_on(two_classes):
    X, y = two_classes
    # No later epoch is better by so much, so the best network is that of the first.
    model = SparseMLPClassifier(
        (9,), early_stopping=True, tol=10.0, n_iter_no_change=9, max_iter=9, random_state=0
    )
    model.partial_fit(X, y, eval_set=(X, y))
    model.set_params(callbacks=Explode())
    with pytest.raises(DivergenceError, match="after the last step"):
        model.partial_fit(X, y, eval_set=(X, y))
    assert model._state.network.is_finite()
    assert model._state.network is not model.network_
    model.set_params(callbacks=None).partial_fit(X, y, eval_set=(X, y))
    assert model.network_.is_finite()
