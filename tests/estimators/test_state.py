import copy
import json

import numpy as np
import pytest

from ratoon import SparseMLPClassifier, SparseMLPRegressor
from ratoon.errors import FormatError, InvalidParameterError
from ratoon.estimators.state import UnsavedParameterWarning, from_state, to_state
from ratoon.evolution import SET, STRATEGIES
from ratoon.optimizers import SGD
from ratoon.training import Callback

MODELS = [
    SparseMLPClassifier(),
    SparseMLPClassifier(density=0.3, evolution=SET(zeta=0.2), solver=SGD(0.5), dropout=0.2),
    SparseMLPClassifier(early_stopping=True, class_weight={0: 1.0, 1: 2.0}),
    SparseMLPClassifier(early_stopping=True, restore_best=False, scale=None, dtype="float32"),
    SparseMLPRegressor(loss="squared_error", learning_rate="step", warm_up=0.2),
    *(SparseMLPClassifier(density=0.3, evolution=name) for name in STRATEGIES),
]


def through_json(model):
    config, arrays, networks = to_state(model)
    copied = {name: np.array(values) for name, values in arrays.items()}
    return from_state(json.loads(json.dumps(config)), copied, copy.deepcopy(networks))


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_restored_estimator_predicts_alike_and_trains_on_alike(
    model, two_classes, equal_networks
):
    X, y = two_classes
    model = copy.deepcopy(model).set_params(
        hidden_layer_sizes=(15,), max_iter=5, random_state=2**60 + 1
    )
    eval_set = (X[:30], y[:30])
    for _ in range(3):
        model.partial_fit(X, y, eval_set=eval_set)
    again = through_json(model)

    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.history_ == model.history_
    assert again.best_iteration_ == model.best_iteration_
    for _ in range(4):  # to the end of the cycle, and into the next
        model.partial_fit(X, y, eval_set=eval_set)
        again.partial_fit(X, y, eval_set=eval_set)
    assert equal_networks(again.network_, model.network_)
    assert equal_networks(again._state.network, model._state.network)
    assert again.loss_curve_ == model.loss_curve_
    assert again.report_.layers == model.report_.layers


@pytest.mark.parametrize(
    "labels", [["b", "a"], np.array(["b", "a"], dtype=object), [7, -1], [True, False], [0.0, 2.0]]
)
def test_classes_and_names_are_restored(two_classes, labels):
    pd = pytest.importorskip("pandas")
    X, y = two_classes
    frame = pd.DataFrame(X, columns=[f"gene é {i}" for i in range(8)])
    model = SparseMLPClassifier((5,), max_iter=2).fit(frame, np.asarray(labels)[y])
    again = through_json(model)
    assert again.classes_.dtype == model.classes_.dtype
    assert again.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))


def test_several_labels_and_several_targets_are_restored(two_classes):
    X, _ = two_classes
    for model, y in (
        (SparseMLPClassifier((5,), max_iter=2), (X[:, :3] > 0).astype(int)),
        (SparseMLPRegressor((5,), max_iter=2), X[:, :3]),
        (SparseMLPRegressor((5,), max_iter=2), X[:, :1]),
    ):
        model.fit(X, y)
        np.testing.assert_array_equal(through_json(model).predict(X), model.predict(X))


def test_parameters_that_cannot_be_written_give_a_warning_twice(two_classes):
    X, y = two_classes
    model = SparseMLPClassifier(
        (5,), max_iter=2, learning_rate=lambda progress: 1.0, callbacks=[Callback()]
    ).fit(X, y)
    with pytest.warns(UnsavedParameterWarning, match=r"\['learning_rate'\] cannot be written"):
        state = to_state(model)
    with pytest.warns(UnsavedParameterWarning, match="set them again"):
        again = from_state(*state)
    assert again.learning_rate == "auto"
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize(
    "change",
    [
        lambda c, a, n: c.update(estimator="os.system"),
        lambda c, a, n: c.update(more=1),
        lambda c, a, n: c.pop("shape"),
        lambda c, a, n: c["parameters"].update(unknown=1),
        lambda c, a, n: c["parameters"].update(zeta=7),
        lambda c, a, n: c["parameters"].update(n_jobs=3.0),
        lambda c, a, n: c["parameters"].update(n_jobs="auto"),
        lambda c, a, n: c["parameters"].update(random_state=1.5),
        lambda c, a, n: c["parameters"].update(random_state=-1),
        lambda c, a, n: c["parameters"].update(loss="hinge"),
        lambda c, a, n: c["parameters"].update(evolution={"object": "eval", "fields": {}}),
        lambda c, a, n: c["progress"].update(seed="x"),
        lambda c, a, n: c["progress"].update(seed="-1"),
        lambda c, a, n: c["progress"].update(seed="٣"),
        lambda c, a, n: c["progress"].update(seed=3),
        lambda c, a, n: c["progress"].update(cycle=0.0),
        lambda c, a, n: c["progress"].update(epochs_done=True),
        lambda c, a, n: c["progress"].update(evolving=0),
        lambda c, a, n: c["progress"].update(rewired=[1]),
        lambda c, a, n: c["progress"].update(rewired=[1.0, 1]),
        lambda c, a, n: c["progress"].pop("cycle"),
        lambda c, a, n: c["progress"].update(stopping=3),
        lambda c, a, n: c["progress"].update(
            stopping={
                "patience": 1,
                "tol": 0.0,
                "restore_best": True,
                "best_score": 1.0,
                "best_epoch": 0,
                "n_waited": 0,
            }
        ),
        lambda c, a, n: c["shape"].update(n_samples=0),
        lambda c, a, n: c["shape"].update(n_samples=30.5),
        lambda c, a, n: c["shape"].update(is_classifier=1),
        lambda c, a, n: c["shape"].update(more=0),
        lambda c, a, n: c.update(n_features=9),
        lambda c, a, n: c.update(n_features=8.0),
        lambda c, a, n: c["targets"].update(multilabel=0),
        lambda c, a, n: c.update(targets={}),
        lambda c, a, n: a.update(more=np.zeros(2)),
        lambda c, a, n: a.update(classes=np.array([1, 0])),
        lambda c, a, n: a.update(classes=np.array([0, 1, 2])),
        lambda c, a, n: a.pop("classes"),
        lambda c, a, n: a.pop("history/loss"),
        lambda c, a, n: a.update(feature_names=np.array(["a"])),
        lambda c, a, n: setattr(n[0].layers[-1], "activation", "relu"),
        lambda c, a, n: setattr(n[0].layers[-1], "dropout", 0.5),
        lambda c, a, n: n.clear(),
        lambda c, a, n: n.extend(n),
        lambda c, a, n: n.extend(2 * n),
    ],
)
def test_an_invalid_state_of_an_estimator_is_refused(two_classes, change):
    model = SparseMLPClassifier((5,), max_iter=2, random_state=0).fit(*two_classes)
    config, arrays, networks = to_state(model)
    config = json.loads(json.dumps(config))
    change(config, arrays, networks)
    with pytest.raises(FormatError):
        from_state(config, arrays, networks)


def test_a_regressor_needs_one_positive_spread_per_target(two_classes):
    X, _ = two_classes
    model = SparseMLPRegressor((5,), max_iter=2).fit(X, X[:, 0])
    config, arrays, networks = to_state(model)
    with pytest.raises(FormatError, match="positive spread"):
        from_state(config, {**arrays, "target_std": np.array([0.0])}, networks)


@pytest.mark.parametrize("wrong", [{"n_jobs": 3.0}, {"random_state": -1}, {"loss": "hinge"}])
def test_what_could_not_be_loaded_is_not_written(two_classes, wrong):
    model = SparseMLPClassifier((5,), max_iter=2, random_state=0).fit(*two_classes)
    with pytest.raises(InvalidParameterError):
        to_state(model.set_params(**wrong))


def test_features_of_several_labels_rise_or_fall_only(two_classes):
    X, _ = two_classes
    model = SparseMLPClassifier((5,), max_iter=2, random_state=0).fit(X, (X[:, :3] > 0).astype(int))
    config, arrays, networks = to_state(model)
    arrays["ranking/highest"] = np.full(X.shape[1], 2, dtype=np.int32)
    with pytest.raises(FormatError, match="a class that does not exist"):
        from_state(config, arrays, networks)
