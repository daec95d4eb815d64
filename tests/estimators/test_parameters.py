import numpy as np
import pytest
import scipy.sparse

from ratoon import SparseMLPClassifier, SparseMLPRegressor, SparseMLPSurvival
from ratoon.errors import InvalidParameterError
from ratoon.estimators.parameters import PARAMETERS, check_parameters
from ratoon.evolution import SET
from ratoon.training import Callback


def check(**parameters):
    check_parameters(SparseMLPClassifier(**parameters).get_params(), owner="Here")


@pytest.mark.parametrize("kind", [SparseMLPClassifier, SparseMLPRegressor])
def test_defaults_and_presets_pass(kind):
    for preset in (None, "paper", "fast", "large"):
        check_parameters(kind(preset=preset).get_params(), owner="Here")


def test_every_parameter_is_in_the_table_with_a_check_or_checked_elsewhere():
    kinds = (SparseMLPClassifier, SparseMLPRegressor, SparseMLPSurvival)
    assert set().union(*(kind().get_params() for kind in kinds)) == set(PARAMETERS)
    elsewhere = {name for name, parameter in PARAMETERS.items() if parameter.check is None}
    assert elsewhere == {"class_weight", "n_jobs", "random_state"}


@pytest.mark.parametrize(
    "parameters",
    [
        {"hidden_layer_sizes": ()},
        {"hidden_layer_sizes": 30},
        {"hidden_layer_sizes": np.array([30, 20])},
        {"epsilon": np.float32(10)},
        {"density": 1},
        {"batch_size": np.int64(5)},
        {"shuffle": np.bool_(False)},
        {"learning_rate": lambda progress: 1.0 - progress},
        {"evolution": SET(zeta=0.1)},
        {"verbose": True},
        {"scale": None},
        {"tol": 0},
    ],
)
def test_valid_values_pass(parameters):
    check(**parameters)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"hidden_layer_sizes": (0,)}, "No hidden layer at all is written as"),
        ({"hidden_layer_sizes": "wide"}, "the widths of the hidden layers"),
        ({"hidden_layer_sizes": (2.5,)}, "a whole number of at least 1, got"),
        ({"epsilon": 0}, "that one is called `adam_eps` here"),
        ({"epsilon": "10"}, "`epsilon` must be a positive number"),
        ({"density": 0}, r"`density` must be a number in \(0, 1\], got 0"),
        ({"density": 1.5}, r"a number in \(0, 1\], got 1.5"),
        ({"density": np.nan}, "got nan"),
        ({"epsilon": 5, "density": 0.1}, "give either `epsilon` or `density`"),
        ({"zeta": 1.0}, r"`zeta` must be a number in \[0, 1\), got 1.0"),
        ({"evolution": "sett"}, "Did you mean 'set'"),
        ({"evolution": SET}, r"Perhaps SET\(\) was meant"),
        ({"evolution": 3}, "the name of a strategy or a strategy object"),
        ({"activation": "rely"}, "Did you mean 'relu'"),
        ({"slope": np.inf}, "`slope` must be a number"),
        ({"dropout": 1.0}, r"in \[0, 1\)"),
        ({"solver": "adamw"}, "Did you mean 'adam'"),
        ({"solver": object()}, "an optimizer of ratoon.optimizers"),
        ({"learning_rate_init": 0.0}, "`learning_rate_init` must be a positive number"),
        ({"learning_rate": "invscaling"}, "or a function of the progress of training"),
        ({"weight_decay": -1e-4}, "0 or above"),
        ({"decay": "none"}, "'coupled', 'released'"),
        ({"adam_eps": 0}, "`adam_eps` must be a positive number"),
        ({"batch_size": 5.0}, "Give it as a whole number: 5"),
        ({"batch_size": True}, "got True"),
        ({"max_iter": 0}, "at least 1, got 0"),
        ({"shuffle": "yes"}, "True or False, got 'yes'"),
        ({"init": "xavier"}, "'he', 'set', 'zero'"),
        ({"start": "papers"}, "Did you mean 'paper'"),
        ({"scale": "minmax"}, "'standard', 'global', None, got 'minmax'"),
        ({"clip": -1}, "`clip` must be a number, 0 or above"),
        ({"validation_fraction": 0}, r"in \(0, 1\)"),
        ({"preset": "auto"}, "None, 'paper', 'fast', 'large'"),
        ({"dtype": "float16"}, "'float32', 'float64'"),
        ({"callbacks": [print]}, "given to `set_callbacks`"),
        ({"callbacks": Callback}, "objects of `ratoon.training.Callback`"),
        ({"topology": [np.eye(3)]}, "or None per layer, got 'ndarray'"),
        ({"topology": scipy.sparse.eye_array(3)}, "For the first layer alone write"),
        ({"verbose": -1}, "`verbose` must be"),
    ],
)
def test_invalid_values_are_refused_with_the_valid_ones(parameters, message):
    with pytest.raises(InvalidParameterError, match=message) as caught:
        check(**parameters)
    assert str(caught.value).startswith("Here: ")


def test_parameters_are_checked_by_fit_and_not_before():
    model = SparseMLPClassifier(epsilon=-1).set_params(density=7)
    with pytest.raises(InvalidParameterError):
        model.fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 1e-8}, "`epsilon=1e-08` leaves a 3 -> 5 layer with no connections"),
        ({"density": 1e-8}, "the density must be at least 0.0667"),
        ({"n_jobs": 0}, "`n_jobs` must be None, a positive number"),
        ({"random_state": -1}, "`random_state` must not be negative"),
    ],
)
def test_errors_that_depend_on_the_data_are_raised_by_fit(parameters, message):
    with pytest.raises(InvalidParameterError, match=message):
        SparseMLPClassifier((5,), **parameters).fit(np.eye(3), [0, 1, 1])


def test_epsilon_that_would_overfill_a_layer_fills_it():
    model = SparseMLPClassifier((5,), epsilon=1e9, max_iter=3).fit(np.eye(3), [0, 1, 1])
    assert all(layer.topology.is_full for layer in model.network_.layers)
