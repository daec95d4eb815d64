"""Settings: resolved once, kept with the fit and its file, also for files that have none."""

from dataclasses import replace

import numpy as np
import pytest

from ratoon import SparseMLPClassifier, SparseMLPRegressor
from ratoon.datasets import make_microarray
from ratoon.errors import FormatError, InvalidParameterError
from ratoon.estimators.state import from_state, to_state
from ratoon.estimators.stored_settings import settings_from_plain, settings_to_plain
from ratoon.evolution import SET, annealed_set
from ratoon.optimizers import SGD
from ratoon.storage import Checkpoint
from ratoon.training import Callback

QUICK = {"hidden_layer_sizes": (20,), "density": 0.3, "max_iter": 6, "random_state": 0}


def fitted(two_classes, **parameters):
    return SparseMLPClassifier(**{**QUICK, **parameters}).fit(*two_classes)


def as_old_file(model, **parameters):
    """Return the state of a model as versions without settings wrote it."""
    config, arrays, networks = to_state(model)
    del config["settings"]
    if config["parameters"]["zeta"] is None:
        config["parameters"]["zeta"] = 0.3  # the default then
    config["parameters"].update(parameters)
    return config, arrays, networks


# ---------------------------------------------------------------------------------- with the fit


def test_the_report_describes_the_fit_and_not_changed_parameters(two_classes):
    model = fitted(two_classes)
    before = str(model.report_)
    model.set_params(density=0.9, solver=SGD(), hidden_layer_sizes=(3,), max_iter=99)
    assert str(model.report_) == before
    assert model.solver_ == "adam"


@pytest.mark.parametrize(
    ("parameters", "solver"),
    [
        ({}, "adam"),
        ({"learning_rate_init": 0.01}, "sgd"),
        ({"preset": "paper"}, "sgd"),
        ({"solver": SGD(momentum=0.0)}, "SGD"),
    ],
)
def test_the_solver_is_named(parameters, solver, two_classes):
    assert fitted(two_classes, **parameters).solver_ == solver


def test_settings_are_those_of_the_last_call(two_classes):
    model = fitted(two_classes)
    model.set_params(batch_size=7).partial_fit(*two_classes)
    assert model.settings_.batch_size == 7
    assert model.settings_.reason == "it continues from the network of an earlier fit"


@pytest.mark.parametrize(
    "changed", [{"hidden_layer_sizes": (5,)}, {"density": 0.9}, {"activation": "tanh"}]
)
def test_another_network_is_refused_where_training_continues(changed, two_classes):
    model = fitted(two_classes, warm_start=True)
    model.set_params(**changed)
    with pytest.raises(InvalidParameterError, match="training continues from a network with"):
        model.fit(*two_classes)
    with pytest.raises(InvalidParameterError, match="training continues from a network with"):
        model.partial_fit(*two_classes)
    assert model.set_params(warm_start=False).fit(*two_classes).n_iter_ == 6


class PlanKept(Callback):
    """Keeps the plan of the training."""

    def on_fit_begin(self, training):
        self.plan = training.plan


def test_the_training_uses_the_settings_that_are_kept(two_classes):
    kept = PlanKept()
    settings = fitted(two_classes, callbacks=kept, n_jobs=3, batch_size=500).settings_
    assert (kept.plan.n_threads, kept.plan.batch_size) == (3, 90)
    for name in ("n_threads", "batch_size", "optimizer", "evolution", "shuffle"):
        assert getattr(kept.plan, name) == getattr(settings, name)
    assert kept.plan.n_epochs == settings.max_iter
    assert kept.plan.learning_rate == settings.learning_rate_init


# ---------------------------------------------------------------------------------- in a file


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"solver": SGD(momentum=0.5), "evolution": SET(zeta=0.2)},
        {"preset": "paper", "early_stopping": True, "validation_fraction": 0.3},
        {"start": "f", "evolution": "guided_set", "scale": None, "learning_rate": "step"},
    ],
)
def test_settings_are_saved_and_loaded(parameters, two_classes):
    model = fitted(two_classes, **parameters)
    again = from_state(*to_state(model))
    assert again.settings_ == model.settings_
    assert str(again.report_) == str(model.report_)


def test_settings_that_cannot_be_written_are_resolved_again(two_classes):
    model = fitted(two_classes, learning_rate=lambda progress: 1.0, start=np.ones(8))
    stored = settings_to_plain(model.settings_)
    assert not {"learning_rate", "start"} & set(stored)
    again = settings_from_plain(stored, replace(model.settings_, solver="sgd", start="exact"))
    assert (again.solver, again.start) == ("adam", "exact")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("surprise", 1),
        ("solver", 3),
        ("reason", "x" * 2000),
        ("max_iter", 0),
        ("max_iter", True),
        ("epsilon", -1.0),
        ("density", "0.3"),
        ("shuffle", 1),
        ("hidden_layer_sizes", [3]),
        ("connections", {"tuple": [-1]}),
        ("given_topology", {"tuple": [True]}),
        ("optimizer", None),
        ("evolution", "set"),
        ("evolution", {"object": "Popen", "fields": {}}),
        ("n_threads", 0),
        ("dtype", "float16"),
        ("start", None),
    ],
)
def test_damaged_settings_are_refused(name, value, two_classes):
    config, arrays, networks = to_state(fitted(two_classes))
    config["settings"][name] = value
    with pytest.raises(FormatError):
        from_state(config, arrays, networks)


# ------------------------------------------------------------------------- files without settings


def test_set_in_an_old_file_is_what_it_was_then(two_classes, equal_networks):
    model = fitted(two_classes, evolution="annealed_set")
    old = from_state(*as_old_file(model, evolution="set"))
    assert (old.evolution, old.zeta) == ("annealed_set", None)
    assert old.settings_.evolution == annealed_set(0.3)
    for _ in range(4):
        model.partial_fit(*two_classes)
        old.partial_fit(*two_classes)
    assert equal_networks(old.network_, model.network_)


def test_set_with_the_paper_preset_in_an_old_file_stays_as_published(two_classes, equal_networks):
    model = fitted(two_classes, preset="paper", evolution="set", zeta=0.2)
    old = from_state(*as_old_file(model))
    assert (old.evolution, old.zeta) == ("set", 0.2)
    assert equal_networks(
        old.partial_fit(*two_classes).network_, model.partial_fit(*two_classes).network_
    )


def test_parameters_without_an_effect_in_an_old_file_get_their_defaults(
    two_classes, equal_networks
):
    model = fitted(two_classes, evolution="rigl", solver="adam")
    unused = {"momentum": 0.5, "tol": 0.1, "slope": 0.3, "n_iter_no_change": 2}
    old = from_state(*as_old_file(model, **unused))
    assert old.get_params() == model.get_params()
    assert equal_networks(
        old.partial_fit(*two_classes).network_, model.partial_fit(*two_classes).network_
    )


def test_an_old_file_of_a_closed_form_fit_reports_it():
    data, _ = make_microarray(30, 120, n_informative=20, random_state=1)
    for kind in (SparseMLPClassifier, SparseMLPRegressor):
        model = kind(random_state=0).fit(data.X, data.y)
        old = from_state(*as_old_file(model))
        assert old.solver_ == "closed form"
        assert str(old.report_) == str(model.report_)
        trained = kind(random_state=0).partial_fit(data.X, data.y)
        assert from_state(*as_old_file(trained)).solver_ == trained.solver_
        model.partial_fit(data.X, data.y)
        assert from_state(*as_old_file(model)).settings_.after_closed_form


# ---------------------------------------------------------------------------- the training loss


def test_without_early_stopping_a_training_loss_that_no_longer_falls_ends_the_fit(two_classes):
    how = {**QUICK, "max_iter": 60, "n_iter_no_change": 4}
    assert fitted(two_classes, **{**how, "n_iter_no_change": None}).n_iter_ == 60
    assert fitted(two_classes, **how, tol=10.0).n_iter_ == 5, "the first epoch counts as better"
    model = fitted(two_classes, **how, tol=0.01)
    losses = np.array(model.loss_curve_)
    assert 5 <= losses.size < 60
    assert losses[-4:].min() >= losses[:-4].min() - 0.01


def test_a_fit_that_ended_at_a_plateau_ends_there_when_resumed(two_classes, tmp_path):
    how = {"max_iter": 60, "n_iter_no_change": 4, "tol": 0.01}
    whole = fitted(two_classes, **how)
    for _ in range(2):
        again = fitted(two_classes, **how, callbacks=Checkpoint(tmp_path, every=3))
        assert again.loss_curve_ == whole.loss_curve_
