"""`prepare` and `groups`: learned from training rows, kept in the file, applied by predictions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from ratoon import Prepare, SparseMLPClassifier, SparseMLPRegressor, load
from ratoon.datasets import Dataset
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.export import to_onnx
from ratoon.inference import Predictor
from ratoon.samples.groups import ConfoundedGroupsWarning
from ratoon.training import Callback

QUICK = {"solver": "adam", "max_iter": 5, "random_state": 0, "epsilon": 5}


@pytest.fixture
def data():
    """Intensities of 60 samples in 6 batches, which are scaled and shifted."""
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 30)
    batch = np.repeat(np.arange(6), 10)
    logs = rng.normal(7, 1, (60, 120)) + 1.5 * (np.arange(120) < 15) * y[:, None]
    logs += rng.normal(0, 1, (6, 120))[batch]
    names = tuple(f"b{b}" for b in batch)
    return Dataset(
        2**logs - 3,
        y,
        class_names=("ill", "well"),
        groups=names,
        group_column="batch",
        feature_names=tuple(f"G{i}" for i in range(120)),
    )


@pytest.mark.parametrize("solver", ["ridge", "adam"])
@pytest.mark.parametrize("prepare", ["log2=auto,quantile", "log2", "center_groups,log2"])
def test_a_prepared_model_predicts_the_same_from_its_file(data, tmp_path, solver, prepare):
    model = SparseMLPClassifier(prepare=prepare, random_state=0, solver=solver)
    if solver == "adam":
        model.set_params(max_iter=5)
    model.fit(data)
    assert model.preparation_.log2
    model.save(tmp_path / "a.ratoon")
    again = load(tmp_path / "a.ratoon")
    assert again.prepare == prepare
    assert_array_equal(again.predict_proba(data), model.predict_proba(data))
    if "center" not in prepare:
        found = Predictor.load(tmp_path / "a.ratoon").predict_proba(data.X)
        # NumPy adds in another order than the kernels, in float32.
        assert_allclose(found, model.predict_proba(data), atol=1e-4)
        assert_array_equal(model.predict_proba(data.take(range(7))), model.predict_proba(data)[:7])


def test_a_prepared_model_is_that_of_samples_prepared_by_hand(data):
    x = np.log2(np.maximum(data.X, 0) + 1)
    prepared = SparseMLPClassifier((9,), prepare="log2", **QUICK).fit(data.X, data.y)
    by_hand = SparseMLPClassifier((9,), **QUICK).fit(x, data.y)
    assert_array_equal(prepared.predict_proba(data.X), by_hand.predict_proba(x))


def test_logarithms_are_not_taken_twice(data):
    x = np.log2(np.maximum(data.X, 0) + 1)
    model = SparseMLPClassifier((9,), prepare="log2=auto", **QUICK).fit(x, data.y)
    assert not model.preparation_.log2


def test_rows_that_are_held_out_are_not_learned_from(data):
    x = data.X.copy()
    given = {"early_stopping": True, "validation_fraction": 0.3, **QUICK}
    model = SparseMLPClassifier((9,), prepare="quantile", **given)
    first = model.fit(x, data.y).preparation_.quantiles
    held = sorted_rows_held_out(x, data.y, given)
    x[held] *= 3
    assert_array_equal(clone(model).fit(x, data.y).preparation_.quantiles, first)


def sorted_rows_held_out(x, y, given):
    seen = set()

    class Watch(Callback):
        def on_fit_begin(self, training):
            seen.update(training.data.rows.tolist())

    SparseMLPClassifier((9,), callbacks=Watch(), **given).fit(x, y)
    return np.setdiff1d(np.arange(len(y)), sorted(seen))


def test_training_goes_on_with_the_preparation_of_the_first_fit(data):
    model = SparseMLPClassifier((9,), prepare="log2,quantile", **QUICK)
    model.partial_fit(data.X[:40], data.y[:40], classes=[0, 1])
    first = model.preparation_
    model.partial_fit(data.X[40:], data.y[40:])
    assert model.preparation_ is first
    model.set_params(prepare="log2")
    with pytest.raises(InvalidParameterError, match="prepare"):
        model.partial_fit(data.X, data.y)


def test_a_fit_without_prepare_forgets_the_preparation(data):
    model = SparseMLPClassifier((9,), prepare="log2", **QUICK).fit(data.X, data.y)
    assert model.set_params(prepare=None).fit(data.X, data.y).preparation_ is None


def test_centring_needs_groups(data):
    model = SparseMLPRegressor((9,), prepare=Prepare(center_groups=True), **QUICK)
    with pytest.raises(InvalidInputError, match="groups are not known"):
        model.fit(data.X, data.X[:, 0])
    model.fit(data.X, data.X[:, 0], groups=data.groups)
    with pytest.raises(InvalidInputError, match="not known"):
        model.predict(data.X)
    assert model.predict(data).shape == (60,)


def test_centring_removes_a_batch_effect(data):
    held = np.asarray(data.groups) == "b5"
    train, test = data.take(np.flatnonzero(~held)), data.take(np.flatnonzero(held))
    scores = [
        SparseMLPClassifier(prepare=how, random_state=0).fit(train).score(test, test.labels)
        for how in ("log2", "log2,center_groups")
    ]
    assert scores[1] >= scores[0]
    assert scores[1] >= 0.9


def test_groups_stay_together_where_early_stopping_holds_out(data):
    seen = []

    class Watch(Callback):
        def on_fit_begin(self, training):
            seen.append(training.data.rows)

    model = SparseMLPClassifier(
        (9,), early_stopping=True, validation_fraction=0.3, callbacks=Watch(), **QUICK
    )
    model.fit(data)
    trained = set(np.asarray(data.groups)[seen[0]])
    held = set(np.asarray(data.groups)[np.delete(np.arange(60), seen[0])])
    assert trained
    assert held
    assert not trained & held


def test_the_folds_of_the_closed_form_keep_groups_together():
    # Pairs of equal samples with a random class: their class is known only from the other one.
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(40, 150)), 2, axis=0)
    y = np.repeat(rng.integers(0, 2, 40), 2)
    pairs = np.repeat(np.arange(40), 2)
    accuracy = []
    for groups in (None, pairs):
        model = SparseMLPClassifier(random_state=0).fit(x, y, groups=groups)
        accuracy.append(np.mean(model.cross_validated_outputs_.argmax(axis=1) == y))
    assert accuracy[0] > 0.8
    assert accuracy[1] < 0.7


def test_a_warning_says_that_batches_give_the_classes_away(data):
    with pytest.warns(ConfoundedGroupsWarning, match="batch"):
        SparseMLPClassifier((9,), **QUICK).fit(data.X, data.y, groups=np.where(data.y, "x", "z"))


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a"] * 60, "one group"),
        (["a", "b"], "one group per sample"),
        ([""] + ["a", "b", "c"] * 19 + ["a", "b"], "1 samples have no group"),
    ],
)
def test_useless_groups_are_refused(data, groups, message):
    with pytest.raises(InvalidInputError, match=message):
        SparseMLPClassifier((9,), **QUICK).fit(data.X, data.y, groups=groups)


def test_cross_validation_prepares_inside_the_folds(data):
    model = SparseMLPClassifier(prepare="log2=auto,quantile", random_state=0)
    assert cross_val_score(model, data.X, data.y, cv=3).mean() > 0.7


def test_onnx_refuses_what_it_cannot_hold(data):
    model = SparseMLPClassifier((9,), prepare="log2", **QUICK).fit(data.X, data.y)
    with pytest.raises(InvalidInputError, match="prepares its samples"):
        to_onnx(model)


def test_missing_features_get_their_mean_before_preparation(data):
    model = SparseMLPClassifier((9,), prepare="log2", **QUICK).fit(data)
    short = Dataset(data.X[:, 1:], feature_names=data.feature_names[1:])
    with pytest.warns(UserWarning, match="1 missing"):
        aligned = model.align(short)
    assert_allclose(aligned.X[:, 0], data.X[:, 0].mean())
