"""skops stores estimators without code, and pickles keep every attribute."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import ratoon
from ratoon import (
    SparseAutoencoderSelector,
    SparseBernoulliRBM,
    SparseFeatureSelector,
    SparseMLPClassifier,
    SparseMLPRegressor,
    SparseMLPSurvival,
)
from ratoon.errors import FormatError
from ratoon.estimators.state import UnsavedParameterWarning
from ratoon.evolution import RigL
from ratoon.training import Callback

skops = pytest.importorskip("skops.io", reason="skops is not installed")

TRAINED = {"hidden_layer_sizes": (10,), "density": 0.5, "max_iter": 3, "random_state": 0}


def through_skops(estimator):
    raw = skops.dumps(estimator)
    assert set(skops.get_untrusted_types(data=raw)) <= set(ratoon.skops_trusted())
    return skops.loads(raw, trusted=ratoon.skops_trusted())


@pytest.mark.parametrize(
    "estimator",
    [
        SparseMLPClassifier(random_state=0),
        SparseMLPClassifier(**TRAINED, evolution=RigL(zeta=0.2)),
        SparseMLPRegressor(**TRAINED),
        make_pipeline(MinMaxScaler(), SparseMLPClassifier(**TRAINED, early_stopping=True)),
    ],
    ids=["closed form", "object as parameter", "regressor", "pipeline"],
)
def test_a_fitted_estimator_predicts_the_same_after_skops(estimator, two_classes):
    X, y = two_classes
    fitted = clone(estimator).fit(X, y)
    again = through_skops(fitted)
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert repr(again) == repr(fitted)


def test_a_survival_model_predicts_the_same_after_skops(two_classes):
    X, y = two_classes
    fitted = SparseMLPSurvival(**TRAINED).fit(X, np.c_[np.arange(1.0, len(y) + 1), y])
    np.testing.assert_array_equal(through_skops(fitted).predict(X), fitted.predict(X))


def test_training_continues_exactly_after_skops(two_classes, equal_networks):
    X, y = two_classes
    model = SparseMLPClassifier(**TRAINED)
    model.partial_fit(X, y)
    again = through_skops(model)
    for each in (model, again):
        each.partial_fit(X, y)
    assert equal_networks(model.network_, again.network_)


@pytest.mark.parametrize(
    "selector",
    [
        SparseFeatureSelector(2, estimator=SparseMLPClassifier(**TRAINED), n_repeats=2),
        SparseAutoencoderSelector(2, max_iter=2, n_repeats=1, random_state=0),
    ],
)
def test_a_selector_selects_the_same_after_skops(selector, two_classes):
    selector = selector.fit(*two_classes)
    again = through_skops(selector)
    np.testing.assert_array_equal(again.get_support(), selector.get_support())


def test_an_estimator_that_is_not_fitted_keeps_its_parameters():
    model = SparseMLPClassifier((10, 20), evolution=RigL(zeta=0.2), class_weight={0: 1.0, 1: 2.5})
    again = through_skops(model)
    assert again.get_params() == model.get_params()


def test_a_boltzmann_machine_is_the_same_after_skops_and_trains_on(two_classes):
    X = (two_classes[0] > 0).astype(np.float32)
    rbm = SparseBernoulliRBM(12, density=0.5, n_iter=3, random_state=0)
    assert through_skops(rbm).get_params() == rbm.get_params()
    rbm.partial_fit(X).partial_fit(X)
    again = through_skops(rbm)
    np.testing.assert_array_equal(again.transform(X), rbm.transform(X))
    assert again.history_.to_rows() == rbm.history_.to_rows()
    for each in (rbm, again, pickle.loads(pickle.dumps(rbm))):
        each.partial_fit(X)
    np.testing.assert_array_equal(again.components_.toarray(), rbm.components_.toarray())
    np.testing.assert_array_equal(again.intercept_visible_, rbm.intercept_visible_)


def test_a_damaged_machine_is_refused(two_classes):
    X = (two_classes[0] > 0).astype(np.float32)
    state = SparseBernoulliRBM(12, density=0.5, n_iter=1).fit(X).__getstate__()
    raw = state["ratoon_machine"]
    for damaged in (raw[:-1], b"", "text", raw[:40] + b"x" + raw[41:]):
        with pytest.raises(FormatError):
            SparseBernoulliRBM().__setstate__({**state, "ratoon_machine": damaged})
    changed = {**state["ratoon_parameters"], "n_components": 13}
    with pytest.raises(FormatError):  # of another number of hidden neurons
        SparseBernoulliRBM().__setstate__({**state, "ratoon_parameters": changed})


def test_nothing_is_loaded_without_trust(two_classes):
    raw = skops.dumps(SparseMLPClassifier(**TRAINED).fit(*two_classes))
    with pytest.raises(skops.exceptions.UntrustedTypesFoundException, match="SparseMLPClassifier"):
        skops.loads(raw)


def test_what_no_file_can_hold_is_named(two_classes):
    model = SparseMLPClassifier(**{**TRAINED, "hidden_layer_sizes": (10,)})
    model.set_params(learning_rate=lambda progress: 1.0 - progress).fit(*two_classes)
    with pytest.warns(UnsavedParameterWarning, match="learning_rate"):
        skops.dumps(model)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"ratoon_file": b"x" * 100}, "model file"),
        ({"ratoon_file": b""}, "too few"),
        ({"ratoon_file": "text"}, "must be bytes"),
        ({"ratoon_parameters": 3}, "dictionaries"),
        ({"ratoon_parameters": {"no_such": 1}, "ratoon_values": {}}, "no_such"),
        ({"ratoon_parameters": {"solver": {"object": "os.system", "fields": {}}}}, "not know"),
    ],
)
def test_a_damaged_state_is_refused(state, message):
    with pytest.raises(FormatError, match=message):
        SparseMLPClassifier.__new__(SparseMLPClassifier).__setstate__(state)


def test_the_state_of_another_class_is_refused(two_classes):
    state = SparseMLPRegressor(**TRAINED).fit(*two_classes).__getstate__()
    with pytest.raises(FormatError, match="SparseMLPRegressor was stored as that of a"):
        SparseMLPClassifier().__setstate__(state)


def test_every_flipped_byte_of_the_network_is_found(two_classes):
    raw = bytearray(SparseMLPClassifier(**TRAINED).fit(*two_classes).__getstate__()["ratoon_file"])
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(raw), 40):
        damaged = bytearray(raw)
        damaged[place] ^= 1
        with pytest.raises(FormatError):
            SparseMLPClassifier().__setstate__({"ratoon_file": bytes(damaged)})


class Remembering(Callback):
    pass


def test_pickles_and_copies_keep_what_no_file_can_hold(two_classes):
    model = SparseMLPClassifier(**TRAINED, callbacks=Remembering()).fit(*two_classes)
    model.note = "kept"
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert isinstance(again.callbacks, Remembering)
        assert again.note == "kept"
        np.testing.assert_array_equal(again.predict(two_classes[0]), model.predict(two_classes[0]))
