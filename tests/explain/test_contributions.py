"""Contributions: they sum up, are exact for linear networks, and agree with the shap package."""

import importlib

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

from ratoon import SparseMLPClassifier, SparseMLPRegressor
from ratoon.activations import ACTIVATIONS
from ratoon.datasets import Dataset, make_microarray
from ratoon.errors import InvalidParameterError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 6))
Y = X[:, 0] - 2 * np.abs(X[:, 1]) + X[:, 2] * X[:, 3]
CLASSES = np.where(Y > 0.5, "up", np.where(Y < -1.5, "down", "flat"))


def completeness_error(found):
    total = np.asarray(found.values.sum(axis=1)).ravel() + found.base_values
    return np.abs(total - found.outputs).max()


def regressor(**how):
    chosen = {"max_iter": 20, "dtype": "float64", "random_state": 0, **how}
    return SparseMLPRegressor((12, 8), density=0.6, **chosen).fit(X, Y)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_contributions_and_base_value_sum_up_to_the_prediction(activation):
    model = regressor(activation=activation)
    found = model.explain(X)
    assert completeness_error(found) < 1e-9
    assert_allclose(found.outputs, model.predict(X))


def test_integrated_gradients_approach_the_sum_as_steps_are_added():
    model = regressor(activation="tanh")
    coarse, fine = (
        completeness_error(model.explain(X, method="integrated", n_steps=n)) for n in (5, 200)
    )
    assert fine < 1e-4 < coarse


def test_with_one_hidden_layer_both_methods_agree():
    model = SparseMLPRegressor((20,), activation="tanh", max_iter=20, dtype="float64")
    model.set_params(random_state=0).fit(X, Y)
    rescaled = model.explain(X).values
    # The midpoint rule with 400 steps has an error of about 1/400^2.
    assert_allclose(model.explain(X, method="integrated", n_steps=400).values, rescaled, atol=1e-4)


def test_the_contributions_of_a_linear_network_are_weight_times_deviation():
    model = regressor(activation="identity", clip=0.0)
    first, *others = [weights.toarray() for weights in model.coefs_]
    weights = (first @ np.linalg.multi_dot(others))[:, 0] * model._target_std[0]
    scale = model.network_.scaling.scale
    assert_allclose(model.explain(X).values, (X - X.mean(axis=0)) * scale * weights, atol=1e-9)


def test_two_classes_have_opposite_contributions_and_explain_the_decision_function():
    y = np.where(Y > 0, "ill", "well")
    model = SparseMLPClassifier(max_iter=20, dtype="float64", random_state=0).fit(X, y)
    ill, well = (model.explain(X, target=name) for name in ("ill", "well"))
    assert_allclose(ill.values, -well.values, atol=1e-12)
    assert_allclose(well.outputs, model.decision_function(X))
    assert completeness_error(well) < 1e-9


def test_the_predicted_class_is_explained_unless_another_is_named():
    model = SparseMLPClassifier(max_iter=20, random_state=0).fit(X, CLASSES)
    found = model.explain(X)
    assert list(found.targets) == model.predict(X).tolist()
    assert (found.outputs > 0).all(), "the predicted class has the largest output"
    down = model.explain(X, target="down")
    assert set(down.targets) == {"down"}
    same = np.flatnonzero(np.array(found.targets) == "down")
    assert_allclose(down.values[same], found.values[same])


def test_a_model_in_closed_form_is_explained_completely():
    data, informative = make_microarray(60, 300, 3, 20, effect=3.0, random_state=0)
    model = SparseMLPClassifier(random_state=0).fit(data)
    assert model.solver_ == "closed form"
    found = model.explain(data)
    assert completeness_error(found) < 1e-3 * np.abs(found.outputs).max()  # a float32 network
    strongest = np.argsort(-found.importance())[:20]
    assert np.isin(strongest, informative).mean() > 0.7
    assert found.sample_names == data.sample_names


def test_sparse_samples_have_sparse_contributions_equal_to_dense_ones():
    sparse = scipy.sparse.csr_array(np.where(np.abs(X) > 0.7, X, 0.0))
    model = SparseMLPRegressor((12,), density=0.6, max_iter=5, dtype="float64", random_state=0)
    model.fit(sparse, Y)
    found, dense = model.explain(sparse), model.explain(sparse.toarray())
    assert scipy.sparse.issparse(found.values)
    assert found.values.nnz <= sparse.nnz
    assert_allclose(found.values.toarray(), dense.values, atol=1e-12)
    assert completeness_error(found) < 1e-9


def test_a_baseline_of_several_samples_averages_over_them():
    model = regressor()
    one, other = (model.explain(X, baseline=X[row]) for row in (0, 1))
    both = model.explain(X, baseline=X[:2])
    assert_allclose(both.values, 0.5 * (one.values + other.values))
    assert_allclose(both.base_values, model.predict(X[:2]).mean())
    assert completeness_error(both) < 1e-9
    assert_allclose(one.values[0], 0.0)


def test_blocks_of_samples_give_the_same(monkeypatch):
    model = regressor()
    whole = model.explain(X).values
    module = importlib.import_module("ratoon.explain.contributions")
    monkeypatch.setattr(module, "_BLOCK_BYTES", 1)
    # Products of matrices of other shapes are rounded differently.
    assert_allclose(model.explain(X).values, whole, rtol=1e-9, atol=1e-12)


def test_values_beyond_the_clip_do_not_contribute_more():
    model = regressor(clip=2.0)
    far = np.vstack((X[0], X[0]))
    far[:, 0] = X[:, 0].mean() + np.array([2.5, 100.0]) * X[:, 0].std()
    assert_allclose(*model.explain(far).values)


def test_a_label_of_several_is_explained_by_name():
    y = np.stack((Y > 0, X[:, 4] > 0), axis=1).astype(int)
    model = SparseMLPClassifier(max_iter=5, dtype="float64", random_state=0).fit(X, y)
    assert completeness_error(model.explain(X, target=1)) < 1e-9
    with pytest.raises(InvalidParameterError, match="must name one of them"):
        model.explain(X)


def test_an_output_of_several_is_explained_by_index():
    model = SparseMLPRegressor(max_iter=5, dtype="float64", random_state=0)
    model.fit(X, np.stack((Y, X[:, 4]), axis=1))
    assert_allclose(model.explain(X, target=1).outputs, model.predict(X)[:, 1])
    with pytest.raises(InvalidParameterError, match="index of one"):
        model.explain(X)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"target": "nobody"}, "`target` must be one of"),
        ({"method": "magic"}, "`method` must be one of"),
        ({"n_steps": 0}, "`n_steps` must be"),
        ({"n_steps": True}, "`n_steps` must be"),
        ({"baseline": "median"}, "`baseline` must be"),
        ({"baseline": None}, "`baseline` must be"),
    ],
)
def test_impossible_arguments_are_refused(how, message):
    model = SparseMLPClassifier(max_iter=2, random_state=0).fit(X, CLASSES)
    with pytest.raises(InvalidParameterError, match=message):
        model.explain(X, **how)


def test_top_features_frame_and_names():
    names = tuple("abcdef")
    samples = tuple(f"s{i}" for i in range(80))
    data = Dataset(X, Y, feature_names=names, sample_names=samples)
    found = SparseMLPRegressor(max_iter=50, random_state=0).fit(data).explain(data)
    first = found.top(2, sample="s3")
    assert [abs(row[1]) for row in first] == sorted(np.abs(found.values[3]), reverse=True)[:2]
    assert first[0][2] == X[3, names.index(first[0][0])]
    frame = found.to_frame()
    assert list(frame.columns) == list(names)
    assert list(frame.index) == list(samples)
    assert_allclose(frame.loc["s3"], found.values[3])
    with pytest.raises(InvalidParameterError, match="no sample 's99'"):
        found.top(2, sample="s99")
    with pytest.raises(InvalidParameterError, match="below 80"):
        found.top(2, sample=80)


def test_groups_sum_up_the_contributions_of_their_features():
    found = regressor().explain(X)
    groups = np.zeros((6, 2))
    groups[[0, 1], 0] = groups[[2, 3, 4, 5], 1] = 1
    together = found.group_values(groups)
    assert_allclose(together[:, 0], found.values[:, :2].sum(axis=1))
    assert_allclose(together.sum(axis=1) + found.base_values, found.outputs)
    with pytest.raises(InvalidParameterError, match="is for 2 features"):
        found.group_values(groups[:2])
