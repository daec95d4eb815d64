"""Models trained by strategies of other packages: in a file, and loaded without the package."""

import subprocess
import sys
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from ratoon import SparseMLPClassifier, load
from ratoon.errors import FormatError, InvalidParameterError
from ratoon.estimators.plain import MissingStrategy, find_class, from_plain, to_plain
from ratoon.estimators.state import MissingStrategyWarning, UnsavedParameterWarning
from ratoon.evolution import (
    SET,
    STRATEGIES,
    LayerwiseStrategy,
    NeuronPruning,
    RewiringSchedule,
    ScheduledFraction,
)
from ratoon.evolution.grow import grow_uniformly
from ratoon.evolution.prune import strongest


@dataclass(frozen=True)
class Mine(ScheduledFraction, LayerwiseStrategy):
    zeta: float = 0.3

    def rewire_layer(self, layer, clock, seed):
        count = self.n_replaced(layer, clock)
        return grow_uniformly(layer, strongest(layer.weights, count), count, seed)


class NoDataclass(LayerwiseStrategy):
    schedule = RewiringSchedule()

    def rewire_layer(self, layer, clock, seed):
        return Mine().rewire_layer(layer, clock, seed)


PATH = f"{__name__}:Mine"


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    return X, (X[:, 0] > 0).astype(int)


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setitem(STRATEGIES, "mine", Mine)


def fitted(data, evolution, **changes):
    given = {"density": 0.3, "solver": "sgd", "max_iter": 6, "random_state": 0}
    model = SparseMLPClassifier((9,), evolution=evolution, **{**given, **changes})
    for _ in range(3):
        model.partial_fit(*data)
    return model


@pytest.mark.parametrize("evolution", ["mine", Mine(zeta=0.2)], ids=repr)
def test_a_model_with_a_registered_strategy_is_loaded_as_it_was(
    data, registered, tmp_path, evolution, equal_networks
):
    model = fitted(data, evolution)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.evolution == evolution
    assert again.settings_.evolution == model.settings_.evolution
    for one in (model, again):
        one.partial_fit(*data)
    assert equal_networks(model.network_, again.network_)


@pytest.mark.parametrize(
    ("evolution", "name", "remedy"),
    [
        ("mine", "'mine'", "import the module that registers it"),
        (Mine(zeta=0.2), f"'{PATH}'", f"import {__name__}, `register` the class"),
        (NeuronPruning(base=Mine()), f"'{PATH}'", f"import {__name__}"),
    ],
    ids=repr,
)
def test_a_model_predicts_without_its_strategy_and_names_what_to_import(
    data, monkeypatch, tmp_path, evolution, name, remedy
):
    monkeypatch.setitem(STRATEGIES, "mine", Mine)
    model = fitted(data, evolution)
    model.save(tmp_path / "model")
    monkeypatch.delitem(STRATEGIES, "mine")

    with pytest.warns(MissingStrategyWarning, match="Prediction works without it") as found:
        again = load(tmp_path / "model")
    assert len(found) == 1
    message = str(found[0].message)
    assert f"trained by the strategy {name}, which is neither registered nor installed" in message
    assert remedy in message
    np.testing.assert_array_equal(again.predict(data[0]), model.predict(data[0]))
    assert isinstance(again.evolution, MissingStrategy)
    for train in (again.partial_fit, again.fit):
        with pytest.raises(InvalidParameterError, match="To continue training"):
            train(*data)
    np.testing.assert_array_equal(again.predict(data[0]), model.predict(data[0]))


def test_training_continues_with_another_strategy(data, monkeypatch, tmp_path, equal_networks):
    monkeypatch.setitem(STRATEGIES, "mine", Mine)
    model = fitted(data, "mine")
    model.save(tmp_path / "model")
    monkeypatch.delitem(STRATEGIES, "mine")
    with pytest.warns(MissingStrategyWarning):
        again = load(tmp_path / "model")
    for one in (model, again):
        one.set_params(evolution=Mine()).partial_fit(*data)
    assert equal_networks(model.network_, again.network_)


def test_a_model_saved_without_its_strategy_still_has_it_in_the_file(data, monkeypatch, tmp_path):
    monkeypatch.setitem(STRATEGIES, "mine", Mine)
    fitted(data, Mine(zeta=0.2)).save(tmp_path / "first")
    with monkeypatch.context() as without:
        without.delitem(STRATEGIES, "mine")
        with pytest.warns(MissingStrategyWarning):
            again = load(tmp_path / "first")
        with pytest.warns(UnsavedParameterWarning, match="neither registered nor installed"):
            again.save(tmp_path / "second")
    assert load(tmp_path / "second").evolution == Mine(zeta=0.2)


def test_saving_a_strategy_that_is_not_registered_gives_a_warning(data, tmp_path):
    model = fitted(data, Mine())
    with pytest.warns(UnsavedParameterWarning, match=f"'{PATH}' is neither registered"):
        model.save(tmp_path / "model")
    with pytest.warns(MissingStrategyWarning):
        load(tmp_path / "model")


def test_parameters_of_a_strategy_without_fields_are_not_stored(data, monkeypatch, tmp_path):
    monkeypatch.setitem(STRATEGIES, "other", NoDataclass)
    model = fitted(data, NoDataclass())
    with pytest.warns(UnsavedParameterWarning, match="has parameters that no file can hold"):
        model.save(tmp_path / "model")
    with pytest.warns(MissingStrategyWarning, match="has parameters that no file can hold"):
        again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(data[0]), model.predict(data[0]))


def test_a_strategy_that_refuses_its_stored_parameters_is_missing(registered):
    stored = {"strategy": PATH, "fields": {"zeta": 7}}
    made = from_plain(stored)
    assert isinstance(made, MissingStrategy)
    assert "refuses its parameters (Mine: `zeta` must be in [0, 1), got 7.)" in made.message
    assert to_plain(made) == stored


def test_a_file_cannot_name_a_module_to_import(tmp_path, monkeypatch):
    (tmp_path / "harmful.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    made = from_plain({"strategy": "harmful:Rule", "fields": {}})
    assert isinstance(made, MissingStrategy)
    assert "harmful" not in sys.modules
    assert find_class("os:system") is None


@pytest.mark.parametrize(
    "value",
    [
        {"strategy": "no path", "fields": {}},
        {"strategy": 3},
        {"strategy": PATH, "fields": 3},
        {"strategy": PATH, "fields": {}, "more": 1},
    ],
)
def test_a_damaged_strategy_in_a_file_is_refused(value):
    with pytest.raises(FormatError):
        from_plain(value)


def test_a_registered_class_does_not_hide_a_class_of_this_package(monkeypatch):
    shadow = type("SET", (Mine,), {})
    monkeypatch.setitem(STRATEGIES, "shadow", shadow)
    assert from_plain(to_plain(SET(zeta=0.1))) == SET(zeta=0.1)
    assert type(from_plain(to_plain(SET(zeta=0.1)))) is SET


CHILD = """
import sys, warnings
import numpy as np
from ratoon import load
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    model = load(sys.argv[1])
print(*[str(warning.message) for warning in found])
print(model.predict(np.load(sys.argv[2])).tolist())
"""


def test_another_process_predicts_without_the_strategy(data, registered, tmp_path):
    model = fitted(data, Mine())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.save(tmp_path / "model")
    np.save(tmp_path / "x.npy", data[0])
    done = subprocess.run(
        [sys.executable, "-c", CHILD, tmp_path / "model", tmp_path / "x.npy"],
        capture_output=True,
        text=True,
        check=True,
    )
    *message, predicted = done.stdout.splitlines()
    assert PATH in message[0]
    assert predicted == str(model.predict(data[0]).tolist())
