"""ONNX files: onnxruntime predicts from them what the estimators predict, and they stay sparse."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tests.processes import LOOKS_FOR_RACES

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
if LOOKS_FOR_RACES:
    pytest.skip("finds a race of onnxruntime's own as the process ends", allow_module_level=True)
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from ratoon import SparseMLPClassifier, SparseMLPRegressor  # noqa: E402
from ratoon.activations import ACTIVATIONS  # noqa: E402
from ratoon.errors import InvalidInputError, InvalidParameterError  # noqa: E402
from ratoon.export import graph, to_onnx  # noqa: E402
from ratoon.inference import Predictor  # noqa: E402
from ratoon.network import SparseMLP  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.normal(size=(70, 30)).astype(np.float32)
LABELS = np.array(["ill", "well", "unsure"])[RNG.integers(3, size=70)]


def run(model, x):
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    kind = {"tensor(float)": np.float32, "tensor(double)": np.float64}
    x = x.astype(kind[session.get_inputs()[0].type])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": x}), strict=True))


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"loss": "sigmoid_cross_entropy"},
        {"loss": "squared_error"},
        {"scale": None, "activation": "tanh"},
        {"activation": "leaky_relu", "epsilon": 3},
        {"activation": "all_relu", "epsilon": 1},
        {"activation": "logistic", "dtype": "float64"},
        {"preset": "paper", "max_iter": 2},
        *({"activation": name} for name in ACTIVATIONS),
    ],
    ids=str,
)
def test_probabilities_and_labels_are_those_of_the_classifier(how):
    how = {"hidden_layer_sizes": (60, 40), "max_iter": 5, "random_state": 0, **how}
    model = SparseMLPClassifier(**how).fit(X, LABELS)

    found = run(to_onnx(model), X)

    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found["label"], model.predict(X))


def test_outliers_are_clipped_as_by_the_classifier():
    model = SparseMLPClassifier((20,), clip=1.5, max_iter=3, random_state=0).fit(X, LABELS)

    found = run(to_onnx(model), 9.0 * X)["probabilities"]

    np.testing.assert_allclose(found, model.predict_proba(9.0 * X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("classes", [[5, 7], [False, True], [0.0, 1.0]], ids=str)
def test_labels_keep_their_type(classes):
    y = np.array(classes)[RNG.integers(2, size=70)]
    model = SparseMLPClassifier((10,), max_iter=3, random_state=0).fit(X, y)

    found = run(to_onnx(model), X)["label"]

    assert found.dtype == model.classes_.dtype
    np.testing.assert_array_equal(found, model.predict(X))


def test_several_labels_per_sample_are_exported():
    model = SparseMLPClassifier((10,), max_iter=3, random_state=0)
    model.fit(X, (RNG.random((70, 4)) < 0.4).astype(int))

    found = run(to_onnx(model), X)

    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=1e-4)
    np.testing.assert_array_equal(found["label"], model.predict(X))


@pytest.mark.parametrize("n_targets", [1, 2])
def test_predictions_are_those_of_the_regressor(n_targets):
    y = 100 + X @ RNG.normal(size=(30, n_targets))
    model = SparseMLPRegressor((20,), max_iter=3, random_state=0).fit(X, y)

    found = run(to_onnx(model), X)["prediction"]

    np.testing.assert_allclose(found, model.predict(X).reshape(70, -1), rtol=1e-4)


@pytest.mark.parametrize("batch", [1, 3, 64])
def test_a_network_gives_its_raw_outputs_for_any_batch(batch):
    network = SparseMLP.start((200, 300, 100, 5), density=0.03, seed=0, activation="relu")
    x = RNG.normal(size=(batch, 200)).astype(np.float32)

    found = run(to_onnx(network), x)["outputs"]

    np.testing.assert_allclose(found, network.outputs(x), rtol=1e-4, atol=1e-5)


def test_outputs_without_connections_are_their_bias():
    network = SparseMLP.start((50, 40, 3), density=0.02, seed=0, activation="tanh")
    for layer in network.layers:
        layer.bias[:] = RNG.normal(size=layer.bias.size)
    assert (network.layers[0].topology.degrees()[1] == 0).any()
    x = RNG.normal(size=(4, 50)).astype(np.float32)

    np.testing.assert_allclose(run(to_onnx(network), x)["outputs"], network.outputs(x), rtol=1e-4)


def test_skewed_layers_are_padded_by_less_than_a_third():
    degrees = np.sort((RNG.pareto(1.0, size=5000) + 1).astype(int))[:4990]

    groups = graph.group_outputs(degrees)

    padded = sum(group.size * degrees[group].max() for group in groups)
    assert np.array_equal(np.sort(np.concatenate(groups)), np.arange(degrees.size))
    assert padded < 4 / 3 * degrees.sum()
    assert len(groups) < 40


def test_the_file_grows_with_connections_not_with_positions(tmp_path):
    network = SparseMLP.start((20_000, 10_000, 3), epsilon=2, seed=0)

    to_onnx(network, tmp_path / "model.onnx")

    dense = 4 * (20_000 * 10_000)
    size = (tmp_path / "model.onnx").stat().st_size
    # An index and a weight per connection, a third for padding, and the scalars per neuron.
    assert size < 4 / 3 * 8 * network.n_connections + 8 * sum(network.widths) + 10_000
    assert size < dense / 500
    kinds = {node.op_type for node in onnx.load(tmp_path / "model.onnx").graph.node}
    assert {"Gather", "MatMul"} <= kinds


def test_memory_of_an_export_grows_with_connections_not_with_positions(tmp_path):
    network = SparseMLP.start((20_000, 10_000, 3), epsilon=2, seed=0)
    to_onnx(SparseMLP.start((4, 3), density=0.5, seed=0), tmp_path / "small.onnx")  # imports

    tracemalloc.start()
    to_onnx(network, tmp_path / "model.onnx")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    # Tables of indices and weights, copied once into the model; a dense layer takes 800 MB.
    assert peak < 100 * network.n_connections + 100 * sum(network.widths)
    assert peak < 10e6


def test_full_layers_become_one_product():
    network = SparseMLP.start((30, 20, 3), density=1.0, seed=0)

    made = to_onnx(network)

    kinds = [node.op_type for node in made.graph.node]
    assert kinds.count("MatMul") == 2
    np.testing.assert_allclose(run(made, X)["outputs"], network.outputs(X), rtol=1e-4, atol=1e-5)


def test_saved_models_and_predictors_can_be_exported(tmp_path):
    model = SparseMLPClassifier((20,), max_iter=3, random_state=0).fit(X, LABELS)
    model.save(tmp_path / "model.ratoon")

    made = [to_onnx(given) for given in (model, Predictor.of(model), tmp_path / "model.ratoon")]

    assert made[0].graph == made[1].graph == made[2].graph
    assert made[0].metadata_props[0].value == str(model.network_.n_connections)


def test_large_models_have_external_weights(tmp_path, monkeypatch):
    monkeypatch.setattr(graph, "LARGE_BYTES", 1000)
    network = SparseMLP.start((100, 50, 3), density=0.2, seed=0)
    x = RNG.normal(size=(4, 100)).astype(np.float32)

    to_onnx(network, tmp_path / "model.onnx")

    assert (tmp_path / "model.onnx.data").exists()
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    np.testing.assert_allclose(session.run(None, {"X": x})[0], network.outputs(x), rtol=1e-4)


def test_only_trained_models_are_exported():
    with pytest.raises(InvalidInputError, match="fitted estimator"):
        to_onnx(SparseMLPClassifier())


@pytest.mark.parametrize(("weights", "bytes_per_connection"), [("bfloat16", 4.0), ("int8", 3.0)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_weights_in_fewer_bits_make_smaller_files(weights, bytes_per_connection, dtype):
    how = {"dtype": dtype, "max_iter": 5, "random_state": 0}
    model = SparseMLPClassifier((400, 300), epsilon=10, **how).fit(X, LABELS)

    whole, small = to_onnx(model), to_onnx(model, weights=weights)

    # Index and weight of every connection, a third for padding, biases and scaling in full.
    rest = 8 * (2 * 30 + 2 * sum(model.network_.widths)) + 10_000
    limit = 4 / 3 * bytes_per_connection * model.network_.n_connections + rest
    assert small.ByteSize() < limit < whole.ByteSize() + rest
    # 8 bits of a weight's fraction in bfloat16, and 127 steps to the largest weight in int8.
    np.testing.assert_allclose(run(small, X)["probabilities"], model.predict_proba(X), atol=0.1)
    same = run(small, X)["label"] == model.predict(X)
    assert same.mean() > 0.95


def test_another_type_of_weights_is_refused():
    with pytest.raises(InvalidParameterError, match="int4"):
        to_onnx(SparseMLP.start((3, 2), density=1.0, seed=0), weights="int4")


def test_options_of_pipelines_are_refused_for_a_network():
    with pytest.raises(InvalidParameterError, match="`X` is for pipelines"):
        to_onnx(SparseMLP.start((3, 2), density=1.0, seed=0), X=X)
