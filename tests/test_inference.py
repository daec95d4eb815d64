"""ratoon.inference: the same predictions, with NumPy alone."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from ratoon import SparseMLPClassifier, SparseMLPRegressor
from ratoon.activations import ACTIVATIONS
from ratoon.errors import FormatError, InvalidInputError
from ratoon.inference import PlainLayer, Predictor
from ratoon.network import SparseMLP
from ratoon.topology import Topology
from tests.storage.cases import seal
from tests.storage.mutate import Parts

RNG = np.random.default_rng(0)
X = RNG.normal(size=(70, 12))


def classifier(**how):
    labels = np.array(["ill", "well", "unsure"])[RNG.integers(3, size=70)]
    return SparseMLPClassifier((20, 15), max_iter=4, random_state=0, **how).fit(X, labels)


def multilabel(**how):
    labels = (RNG.random((70, 3)) < 0.4).astype(int)
    return SparseMLPClassifier((20,), max_iter=4, random_state=0, **how).fit(X, labels)


def regressor(y, **how):
    return SparseMLPRegressor((20, 15), max_iter=4, random_state=0, **how).fit(X, y)


MODELS = {
    "text": lambda: classifier(),
    "numbers": lambda: SparseMLPClassifier((9,), max_iter=4).fit(X, RNG.integers(5, 9, size=70)),
    "objects": lambda: SparseMLPClassifier((9,), max_iter=4).fit(
        X, np.array(["a", "b"], dtype=object)[RNG.integers(2, size=70)]
    ),
    "sigmoid": lambda: classifier(loss="sigmoid_cross_entropy"),
    "squared": lambda: classifier(loss="squared_error"),
    "unscaled": lambda: classifier(scale=None, activation="tanh"),
    "float64": lambda: classifier(dtype="float64", activation="logistic"),
    "bfloat16": lambda: classifier(dtype="bfloat16"),
    "bfloat16 targets": lambda: regressor(X[:, :2], dtype="bfloat16"),
    "early": lambda: classifier(early_stopping=True, n_iter_no_change=1),
    "labels": lambda: multilabel(),
    "labels squared": lambda: multilabel(loss="squared_error"),
    "one target": lambda: regressor(X @ RNG.normal(size=12)),
    "two targets": lambda: regressor(X @ RNG.normal(size=(12, 2))),
    **{name: lambda name=name: classifier(activation=name) for name in ACTIVATIONS},
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("from_file", [False, True])
def test_predictions_are_those_of_the_estimator(name, from_file, tmp_path):
    model = MODELS[name]()
    if from_file:
        model.save(tmp_path / "model.ratoon")
        predictor = Predictor.load(tmp_path / "model.ratoon")
    else:
        predictor = Predictor.of(model)
    close = {"rtol": 1e-4, "atol": 1e-5}  # float32, summed in another order

    found, expected = predictor.predict(X), model.predict(X)
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, **close)
    else:
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(predictor.predict_proba(X), model.predict_proba(X), **close)
        np.testing.assert_array_equal(predictor.classes, model.classes_)


def test_outliers_are_clipped_as_by_the_estimator():
    model = classifier(clip=1.5)
    found = Predictor.of(model).predict_proba(9.0 * X)
    np.testing.assert_allclose(found, model.predict_proba(9.0 * X), rtol=1e-4, atol=1e-5)


def test_a_network_gives_its_raw_outputs():
    network = SparseMLP.start((12, 30, 5), density=0.2, seed=0, dtype=np.float64)

    np.testing.assert_allclose(Predictor.of(network).predict(X), network.outputs(X), rtol=1e-12)
    with pytest.raises(InvalidInputError, match="not a classifier"):
        Predictor.of(network).predict_proba(X)


def test_a_layer_is_the_product_with_its_matrix():
    topology = Topology.random((300, 400), 3000, seed=0)
    weights, x = RNG.normal(size=3000), RNG.normal(size=300)
    layer = PlainLayer.of(300, *topology.pairs(), weights, np.arange(400.0))

    expected = topology.to_csr(weights).T @ x + np.arange(400.0)

    np.testing.assert_allclose(layer(x), expected, rtol=1e-9, atol=1e-9)


def test_a_layer_without_connections_is_its_bias():
    nothing = np.empty(0, dtype=np.int64)
    layer = PlainLayer.of(3, nothing, nothing, np.empty(0), np.arange(4.0), activation="relu")

    assert layer(np.ones(3)).tolist() == [0.0, 1.0, 2.0, 3.0]


def test_outputs_without_connections_are_their_bias():
    topology = Topology.from_pairs((3, 4), [0, 2], [1, 1])
    layer = PlainLayer.of(3, *topology.pairs(), np.array([2.0, 3.0]), np.arange(4.0))

    assert layer(np.array([1.0, 10.0, 100.0])).tolist() == [0.0, 303.0, 2.0, 3.0]


@pytest.mark.parametrize("shape", [(12,), (3, 11), (2, 3, 12)])
def test_samples_of_another_shape_are_refused(shape):
    with pytest.raises(InvalidInputError, match="12 features"):
        Predictor.of(classifier()).outputs(np.zeros(shape))


def test_bfloat16_weights_in_a_file_are_read_to_the_bit(tmp_path):
    model = classifier(dtype="bfloat16")
    assert model.network_.weight_type == "bfloat16"
    model.save(tmp_path / "model.ratoon")
    predictor = Predictor.load(tmp_path / "model.ratoon")
    assert predictor.dtype == np.float32
    for layer, expected in zip(predictor.layers, Predictor.of(model).layers, strict=True):
        np.testing.assert_array_equal(layer.weights, expected.weights)


def test_an_unknown_number_type_is_refused(tmp_path):
    path = tmp_path / "model.ratoon"
    classifier(dtype="bfloat16").save(path)
    raw = path.read_bytes().replace(b'\\"dtype\\":\\"bfloat16\\"', b'\\"dtype\\":\\"bfloat61\\"')
    path.write_bytes(seal(raw))
    with pytest.raises(FormatError, match="unknown number type 'bfloat61'"):
        Predictor.load(path)


def test_nothing_but_numpy_is_needed(tmp_path):
    model = classifier()
    model.save(tmp_path / "model.ratoon")
    np.save(tmp_path / "x.npy", X)
    program = """
import sys
for name in ("ratoon._native", "scipy", "sklearn", "safetensors", "torch", "onnx"):
    sys.modules[name] = None  # importing it raises
import numpy as np
from ratoon.inference import Predictor
p = Predictor.load(sys.argv[1] + "/model.ratoon")
np.save(sys.argv[1] + "/p.npy", p.predict_proba(np.load(sys.argv[1] + "/x.npy")))
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)

    found = np.load(tmp_path / "p.npy")
    np.testing.assert_allclose(found, model.predict_proba(X), rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.ratoon"
    classifier().save(path)
    return path.read_bytes()


def test_a_flipped_byte_anywhere_is_noticed(saved, tmp_path):
    path = tmp_path / "damaged.ratoon"
    for place in RNG.integers(len(saved), size=40):
        damaged = bytearray(saved)
        damaged[place] ^= 0x41
        path.write_bytes(damaged)
        with pytest.raises(FormatError):
            Predictor.load(path)


@pytest.mark.parametrize("length", [0, 4, 8, 100, -1])
def test_a_file_cut_short_is_refused(saved, tmp_path, length):
    path = tmp_path / "short.ratoon"
    path.write_bytes(saved[:length])

    with pytest.raises(FormatError):
        Predictor.load(path)


def test_files_of_something_else_are_refused(tmp_path):
    import safetensors.numpy

    path = tmp_path / "other.safetensors"
    safetensors.numpy.save_file({"a": np.zeros(3)}, path)

    with pytest.raises(FormatError, match="not the file of an estimator"):
        Predictor.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda parts: parts.config["content"].update(targets="one_column"),
        lambda parts: parts.config["content"].update(targets={}),
        lambda parts: parts.config["content"].update(targets={"one_column": 1}),
        lambda parts: parts.config["networks"][0]["layers"][0].update(tile_in=0),
        lambda parts: parts.arrays.update({"networks.0.scaling.shift": np.ones(2, np.float32)}),
    ],
)
def test_a_file_that_could_not_be_predicted_with_is_refused(tmp_path, change):
    model = SparseMLPRegressor((3,), max_iter=1, dtype="float32", random_state=0)
    model.fit(np.eye(6), np.arange(6.0)).save(tmp_path / "m.ratoon")
    parts = Parts((tmp_path / "m.ratoon").read_bytes())
    change(parts)
    (tmp_path / "m.ratoon").write_bytes(seal(parts.joined()))
    with pytest.raises(FormatError):
        Predictor.load(tmp_path / "m.ratoon")


def test_text_takes_the_memory_of_its_characters_whatever_the_file_claims(tmp_path):
    model = SparseMLPClassifier((3,), max_iter=1, random_state=0).fit(np.eye(6), list("aabbcc"))
    model.save(tmp_path / "m.ratoon")
    parts = Parts((tmp_path / "m.ratoon").read_bytes())
    parts.config["arrays"]["classes"]["chars"] = 10**8
    (tmp_path / "m.ratoon").write_bytes(seal(parts.joined()))
    assert Predictor.load(tmp_path / "m.ratoon").classes.dtype == "<U1"
