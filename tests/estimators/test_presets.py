from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from ratoon import SparseMLPClassifier, SparseMLPRegressor
from ratoon.errors import InvalidParameterError
from ratoon.estimators.presets import PRESETS, Shape
from ratoon.estimators.settings import resolve
from ratoon.evolution import SET, RigL, Static, annealed_set
from ratoon.optimizers import SGD, Adam, constant

CLL = Shape(74, 11_340, 3)


def settings(shape=CLL, **parameters):
    return resolve(SparseMLPClassifier(**parameters), shape)


def test_the_paper_preset_has_the_settings_of_the_paper():
    found = resolve(SparseMLPClassifier.paper(), CLL)
    assert found.optimizer == SGD(momentum=0.9, weight_decay=0.0002, decay="released")
    assert found.evolution == SET(zeta=0.3)
    assert (found.epsilon, found.density) == (10.0, None)
    assert (found.init, found.output_init, found.start) == ("set", "set", "paper")
    assert (found.learning_rate_init, found.batch_size, found.max_iter) == (0.01, 5, 500)
    assert found.schedule is constant
    assert (found.activation, found.dropout, found.clip, found.label_smoothing) == ("relu", 0, 0, 0)
    assert found.scale == "standard"


def test_the_paper_model_of_cll_has_the_connections_of_the_paper():
    model = SparseMLPClassifier.paper(
        hidden_layer_sizes=(9000, 9000), max_iter=1, dtype="float32", random_state=0
    )
    rng = np.random.default_rng(0)
    model.fit(rng.normal(size=(10, 11_340)), np.arange(10) % 3)
    # 409,033 in the paper's table; drawn with repetition, so within 0.1 %
    assert abs(model.network_.n_connections - 409_033) < 409


def test_given_parameters_override_any_preset():
    given = {
        "hidden_layer_sizes": (7,),
        "density": 0.5,
        "evolution": "static",
        "solver": "adam",
        "learning_rate_init": 0.3,
        "weight_decay": 0.1,
        "batch_size": 3,
        "max_iter": 2,
        "init": "he",
        "start": "exact",
        "clip": 2.0,
        "dtype": "float32",
    }
    for preset in PRESETS:
        found = settings(preset=preset, **given)
        assert found.hidden_layer_sizes == (7,)
        assert (found.epsilon, found.density) == (None, 0.5)
        assert found.evolution == Static()
        assert found.optimizer == Adam(weight_decay=0.1)
        assert (found.learning_rate_init, found.batch_size, found.max_iter) == (0.3, 3, 2)
        assert (found.init, found.output_init, found.start) == ("he", "he", "exact")
        assert (found.clip, found.dtype) == (2.0, "float32")


def test_a_learning_rate_without_a_solver_means_sgd():
    assert isinstance(settings().optimizer, Adam)
    assert settings(learning_rate_init=0.01).optimizer == SGD(momentum=0.9)
    assert settings(solver="sgd").learning_rate_init == 0.01
    assert settings(solver=Adam()).learning_rate_init == 1e-3
    assert settings(preset="paper", solver="adam").learning_rate_init == 1e-3


def test_zeta_reaches_every_named_strategy_that_has_it():
    assert settings(evolution="set", zeta=0.1).evolution == SET(zeta=0.1)
    assert settings(evolution="rigl", zeta=0.1).evolution == RigL(zeta=0.1)
    assert settings(evolution="guided_set", zeta=0.1).evolution.zeta == 0.1
    assert settings(evolution="guided_set").evolution.zeta == 0.9, "its own default"
    assert settings(zeta=0.1).evolution == annealed_set(0.1)
    assert settings(preset="paper", zeta=0.1).evolution == SET(zeta=0.1)


@pytest.mark.parametrize("evolution", ["static", "deep_r", "nest", SET(zeta=0.2)])
def test_zeta_is_refused_where_it_has_no_effect(evolution):
    assert settings(evolution=evolution) is not None
    with pytest.raises(InvalidParameterError, match=r"`zeta=0\.1` would have no effect"):
        settings(evolution=evolution, zeta=0.1)


def test_set_is_as_published_and_auto_is_annealed_except_in_the_paper_preset():
    for preset in PRESETS:
        assert settings(evolution="set", preset=preset).evolution == SET(zeta=0.3)
        expected = SET(zeta=0.3) if preset == "paper" else annealed_set(0.3)
        assert settings(preset=preset).evolution == expected
        assert settings(preset=preset, zeta=0.3).evolution == expected


@pytest.mark.parametrize("n_samples", [1, 15, 30, 64])
def test_up_to_64_samples_defaults_do_not_depend_on_their_number(n_samples):
    # Else a sample of weight k could not be the same as k copies of it.
    for kind in (SparseMLPClassifier, SparseMLPRegressor):
        given, is_classifier = kind(), kind is SparseMLPClassifier
        found = resolve(given, Shape(n_samples, 20, 3, is_classifier))
        other = resolve(given, Shape(40, 20, 3, is_classifier))
        assert found.batch_size == n_samples
        assert replace(found, batch_size=1, reason="") == replace(other, batch_size=1, reason="")


def test_small_problems_compute_in_double_precision_and_large_ones_do_not():
    assert settings(Shape(100, 20, 2)).dtype == "float64"
    assert settings(Shape(1400, 54_675, 18), preset="paper").dtype == "float32"
    assert settings(dtype="float64").dtype == "float64"


def test_batches_are_never_larger_than_the_data():
    assert settings(batch_size=500).batch_size == 74


def test_slopes_have_defaults_by_activation():
    assert settings(activation="leaky_relu").slope == 0.01
    assert settings(activation="all_relu").slope == 0.6
    assert settings(activation="leaky_relu", slope=0.2).slope == 0.2


def test_given_topologies_define_the_widths_of_hidden_layers():
    wide = scipy.sparse.eye_array(11_340, 50)
    assert settings(topology=[wide]).hidden_layer_sizes == (50,)
    two = [wide, scipy.sparse.eye_array(50, 9)]
    assert settings(topology=two).hidden_layer_sizes == (50, 9)
    to_the_end = [wide, scipy.sparse.eye_array(50, 3)]
    assert settings(topology=to_the_end).hidden_layer_sizes == (50,)


@pytest.mark.parametrize("preset", ["fast", "large"])
def test_other_presets_train_too(two_classes, preset):
    X, y = two_classes
    model = SparseMLPClassifier(preset=preset, max_iter=30, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.8
