"""With many samples `fit` averages networks of several kinds by default."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_friedman1

from ratoon import SparseMLPClassifier, SparseMLPRegressor, load
from ratoon.errors import DivergenceError
from ratoon.estimators import averaged, settings
from ratoon.estimators.averaged import N_PARTS
from ratoon.estimators.recipes import Recipe, Shape, n_networks, recipes
from ratoon.training import Training


@pytest.fixture(scope="module")
def ring():
    """Two classes, inside and outside of a circle: not linear."""
    x = np.random.default_rng(0).normal(size=(300, 4))
    return x, np.where(np.square(x[:, :2]).sum(axis=1) < 1.4, "inside", "outside")


@pytest.fixture(scope="module")
def model(ring):
    x, y = ring
    return SparseMLPClassifier(random_state=0).fit(x[:200], y[:200])


def test_networks_are_averaged_by_default(model, ring):
    x, y = ring
    assert model.score(x[200:], y[200:]) > 0.85
    assert set(model.member_shares_) == {"few features", "two layers", "linear"}
    assert np.isclose(sum(model.member_shares_.values()), 1.0)
    assert model.member_shares_["linear"] < 0.3, "the truth is not linear"
    assert model.settings_.averages
    assert model.settings_.n_networks >= 8
    how = f"trained {model.settings_.n_networks} networks with Adam, because there are 200 samples"
    assert how in str(model.report_)


def test_the_average_is_one_network(model, ring):
    assert len(model.network_.layers) == 3, "the depth of the deepest one"
    assert model.settings_.hidden_layer_sizes == model.network_.widths[1:-1]
    assert sum(model.settings_.connections) == model.network_.n_connections
    assert model.coefs_[0].shape == (4, model.network_.widths[1])


def test_held_back_rows_were_not_seen(model, ring):
    """A network that had seen its row would give it the right class much more often."""
    x, _ = ring
    y = np.random.default_rng(1).permutation(ring[1][:200])
    fitted = SparseMLPClassifier(random_state=0).fit(x[:200], y)
    outputs = fitted.cross_validated_outputs_
    seen = np.isfinite(outputs).all(axis=1)
    assert 0.5 < seen.mean() < 1.0, "eight of ten parts"
    right = fitted.classes_[outputs[seen].argmax(axis=1)] == y[seen]
    assert right.mean() < 0.65, "labels are random"
    assert fitted.validation_scores_ is None, "few rows: their loss chose the epochs"


def test_probabilities_are_calibrated_where_labels_are_random(ring):
    x, _ = ring
    y = np.random.default_rng(1).integers(0, 2, 300)
    p = SparseMLPClassifier(random_state=0).fit(x[:200], y[:200]).predict_proba(x[200:])
    assert p.max(axis=1).mean() < 0.75


def test_the_same_seed_gives_the_same_network_on_any_number_of_threads(model, ring):
    x, y = ring
    again = SparseMLPClassifier(random_state=0, n_jobs=2).fit(x[:200], y[:200])
    assert_array_equal(again.predict_proba(x), model.predict_proba(x))
    other = SparseMLPClassifier(random_state=1).fit(x[:200], y[:200])
    assert np.abs(other.predict_proba(x) - model.predict_proba(x)).max() > 1e-3


def test_an_average_is_saved_and_loaded(model, ring, tmp_path):
    x, y = ring
    model.save(tmp_path / "model.ratoon")
    loaded = load(tmp_path / "model.ratoon")
    assert_array_equal(loaded.predict_proba(x), model.predict_proba(x))
    assert loaded.settings_ == model.settings_
    assert str(loaded.report_) == str(model.report_)
    loaded.partial_fit(x, y)
    assert loaded.network_.widths == model.network_.widths


def test_training_continues_from_an_average(ring):
    x, y = ring
    model = SparseMLPClassifier(random_state=0, warm_start=True)
    model.warm_start = False
    before = model.fit(x, y).network_.widths
    epochs = model.n_iter_
    model.partial_fit(x, y)
    assert model.network_.widths == before
    assert model.n_iter_ == epochs + 1
    assert not model.settings_.averages


def test_a_linear_truth_gets_a_linear_network():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 10))
    y = x @ rng.normal(size=10) + 2.0 * rng.normal(size=400)
    model = SparseMLPRegressor(random_state=0).fit(x[:200], y[:200])
    assert model.member_shares_["linear"] > 0.5
    best = np.linalg.lstsq(x[:200], y[:200], rcond=None)[0]
    residual = np.square(y[200:] - x[200:] @ best).sum()
    total = np.square(y[200:] - y[200:].mean()).sum()
    assert model.score(x[200:], y[200:]) > 1 - residual / total - 0.03


def test_rows_of_weight_zero_and_rare_classes(ring):
    x, y = ring
    y = y.copy()
    y[7] = "alone"
    weights = np.ones(300)
    weights[200:] = 0
    model = SparseMLPClassifier(random_state=0).fit(x, y, sample_weight=weights)
    without = SparseMLPClassifier(random_state=0).fit(x[:200], y[:200])
    assert_allclose(model.predict_proba(x), without.predict_proba(x), atol=1e-6)
    assert np.isnan(model.cross_validated_outputs_[7]).all(), "its class would be unknown"


def test_smooth_functions_of_a_few_features_are_learned():
    """Trained with fewer steps, one layer has an R2 of 0.880."""
    x, y = make_friedman1(1600, 10, noise=1.0, random_state=0)
    assert SparseMLPRegressor(random_state=0).fit(x[:600], y[:600]).score(x[600:], y[600:]) > 0.9


def test_steps_and_interactions_are_learned_by_two_layers():
    """One layer has an R2 of 0.54."""
    x = np.random.default_rng(0).normal(size=(1600, 12))
    y = 3.0 * ((x[:, 1] > 0) & (x[:, 2] > 0)) + 2.0 * (x[:, 0] > 0.3)
    model = SparseMLPRegressor(random_state=0).fit(x[:600], y[:600])
    assert model.member_shares_["two layers"] > 0.5
    assert model.score(x[600:], y[600:]) > 0.8


def test_one_network_without_held_back_rows_trains_less():
    rows = SparseMLPRegressor(epsilon=10.0)
    alone, first = settings.resolve(rows, Shape(2000, 20, 1, False)), recipes(Shape(2000, 20, 1))[0]
    assert (alone.max_iter, alone.learning_rate_init) == (60, 2e-3)
    assert (first.values["max_iter"], first.values["learning_rate_init"]) == (200, 5e-3)


def test_several_labels_and_targets(ring):
    x, _ = ring
    labels = np.c_[x[:, 0] > 0, x[:, 1] > 0, x[:, 2] * x[:, 3] > 0].astype(int)
    model = SparseMLPClassifier(random_state=0).fit(x[:200], labels[:200])
    assert (model.predict(x[200:]) == labels[200:])[:, :2].mean() > 0.9
    targets = np.c_[x[:, 0], x[:, 1] ** 2]
    assert SparseMLPRegressor(random_state=0).fit(x[:200], targets[:200]).score(x, targets) > 0.8


def test_sparse_samples_stay_sparse():
    rng = np.random.default_rng(0)
    x = scipy.sparse.random_array((300, 80), density=0.1, random_state=rng, format="csr")
    y = np.asarray(x[:, :40].sum(axis=1) > x[:, 40:].sum(axis=1)).ravel().astype(int)
    model = SparseMLPClassifier(random_state=0).fit(x[:200], y[:200])
    assert set(model.member_shares_) == {"sparse input", "linear"}
    assert model.network_.scaling.shift is None
    assert model.score(x[200:], y[200:]) > 0.8


def test_a_trial_chooses_where_all_would_take_too_long(monkeypatch, ring):
    x, y = ring
    monkeypatch.setattr(averaged, "WORK", 1.0)
    monkeypatch.setattr(averaged, "TRIAL_ROWS", 250)
    model = SparseMLPClassifier(random_state=0).fit(x, y)
    assert model.member_shares_ == {"few features": 1.0}
    assert model.settings_.n_networks == 1
    assert np.isfinite(model.cross_validated_outputs_).all(axis=1).sum() == 300 / N_PARTS


def test_a_kind_that_diverges_is_left_out(monkeypatch, ring):
    x, y = ring
    made = recipes(Shape(300, 4, 2))

    def with_a_bad_one(shape):
        bad = {**made[1].values, "solver": "sgd", "learning_rate_init": 1e308}
        return made[0], Recipe("bad", bad)

    monkeypatch.setattr(averaged, "recipes", with_a_bad_one)
    assert SparseMLPClassifier(random_state=0).fit(x, y).member_shares_ == {"few features": 1.0}
    monkeypatch.setattr(averaged, "recipes", lambda shape: with_a_bad_one(shape)[1:])
    with pytest.raises(DivergenceError, match="with every kind of network"):
        SparseMLPClassifier(random_state=0).fit(x, y)


def test_progress_is_printed(ring, capsys):
    SparseMLPClassifier(random_state=0, verbose=1).fit(*ring)
    assert "network 1 of 8 (few features): validation score " in capsys.readouterr().err


@pytest.mark.parametrize("parameters", [{"max_iter": 3}, {"dropout": 0.1}, {"scale": None}])
def test_a_parameter_of_the_training_asks_for_one_network(ring, parameters):
    model = SparseMLPClassifier(random_state=0, **parameters).fit(*ring)
    assert not model.settings_.averages
    assert model.settings_.n_networks == 1
    assert not hasattr(model, "member_shares_")


def test_validation_data_ask_for_one_network_and_choose_its_epoch(ring):
    x, y = ring
    model = SparseMLPClassifier(random_state=0).fit(x[:200], y[:200], eval_set=(x[200:], y[200:]))
    assert not model.settings_.averages
    assert model.settings_.early_stopping
    assert model.score(x[200:], y[200:]) == max(model.validation_scores_)


def test_rows_are_held_back_by_default_where_there_are_many(ring, monkeypatch):
    monkeypatch.setattr(settings, "ROWS_TO_SPARE", 1200)
    x = np.random.default_rng(0).normal(size=(1200, 4))
    y = (x[:, 0] > 0).astype(int)
    free = SparseMLPClassifier((5,), random_state=0).fit(x, y)
    assert free.validation_scores_ is not None
    for given in ({"max_iter": 4}, {"early_stopping": False, "max_iter": 4}):
        assert SparseMLPClassifier((5,), random_state=0, **given).fit(x, y).best_iteration_ is None
    assert SparseMLPClassifier((5,), random_state=0).fit(*ring).best_iteration_ is None
    assert SparseMLPClassifier((5,), random_state=0).partial_fit(x, y).validation_scores_ is None


def test_the_number_of_networks_never_grows_with_the_samples():
    for p, k in ((20, 2), (784, 10), (5000, 3)):
        numbers = [
            n_networks(recipes(shape)[0], shape)
            for shape in (Shape(n, p, k) for n in (100, 1000, 10_000, 100_000))
        ]
        assert numbers == sorted(numbers, reverse=True)
        assert numbers[0] == 8


def test_no_warning_is_raised(ring):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SparseMLPClassifier(random_state=0).fit(*ring)


def interrupted_after(monkeypatch, n_epochs):
    """Press Ctrl-C after so many epochs of all networks together."""
    run_epoch, done = Training.run_epoch, []

    def run(training):
        if len(done) == n_epochs:
            raise KeyboardInterrupt
        done.append(training)
        return run_epoch(training)

    monkeypatch.setattr(Training, "run_epoch", run)


def test_an_interrupted_average_has_the_networks_that_were_finished(ring, monkeypatch):
    x, y = ring
    n_epochs = recipes(Shape(300, 4, 2))[0].values["max_iter"]
    interrupted_after(monkeypatch, 2 * n_epochs + 5)
    model = SparseMLPClassifier(random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, y)
    assert model.settings_.n_networks == 2
    assert model.member_shares_ == {"few features": 1.0}
    assert model.n_iter_ == n_epochs
    assert np.isfinite(model.cross_validated_outputs_).all(axis=1).sum() == 2 * 300 / N_PARTS
    assert model.score(x, y) > 0.9


def test_an_interrupted_average_drops_a_kind_that_is_not_finished(ring, monkeypatch):
    first, second = recipes(Shape(300, 4, 2))[:2]
    few = [Recipe(kind.name, {**kind.values, "max_iter": 3}) for kind in (first, second)]
    monkeypatch.setattr(averaged, "recipes", lambda shape: few)
    interrupted_after(monkeypatch, 3 * 8 + 3 * 2)
    model = SparseMLPClassifier(random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*ring)
    assert model.settings_.n_networks == 8
    assert model.member_shares_ == {"few features": 1.0}


def test_an_interrupted_first_network_keeps_its_epochs(ring, monkeypatch):
    x, y = ring
    interrupted_after(monkeypatch, 20)
    model = SparseMLPClassifier(random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, y)
    assert model.n_iter_ == 20
    assert model.settings_.n_networks == 1
    assert model.score(x, y) > 0.8
    interrupted_after(monkeypatch, 0)
    with pytest.raises(KeyboardInterrupt):
        SparseMLPClassifier(random_state=0).fit(x, y)


@pytest.mark.parametrize("n_epochs", [0, 1])
def test_an_interrupted_trial_leaves_nothing(ring, monkeypatch, n_epochs):
    monkeypatch.setattr(averaged, "WORK", 1.0)
    interrupted_after(monkeypatch, n_epochs)
    model = SparseMLPClassifier(random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*ring)
    assert not hasattr(model, "network_")
