"""Export to ONNX without making the network dense, neither in the file nor in memory.

ONNX runtimes support no sparse products: they make a sparse initializer dense when they load it.
So a layer is written with operators that every runtime has.  Outputs are grouped by their number of
connections.  Each group has a table of input indices and one of weights, padded to the largest
number of connections in the group, and two operators:

    Gather   copies the activations of the inputs of each output,
    MatMul   multiplies them by the weights and sums the products of each output.

(`Mul` and `ReduceSum` would compute the same, but took three times as long.)  Activations have the
shape (neurons, samples), so that `Gather` copies whole rows.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ratoon.activations import ACTIVATIONS
from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.inference import PlainLayer, Predictor

OPSET = 17
IR_VERSION = 8
WIDENING = 1.3
"""Largest ratio of the numbers of connections of two outputs in the same group."""
LARGE_BYTES = 1_500_000_000
"""Above this size weights are written to a second file, because one file is limited to 2 GB."""


def to_onnx(model: Any, path: str | Path | None = None) -> Any:
    """Export a trained model to ONNX, without making it dense.

    Parameters
    ----------
    model : estimator, SparseMLP, Predictor, or path of a saved estimator
        The model to export.
    path : path, optional
        File to write; without it the model is only returned.

    Returns
    -------
    onnx.ModelProto
        The model.  Its input ``X`` is (samples, features) in the dtype of the network.  Its
        outputs are ``probabilities`` and ``label`` for classifiers, ``prediction`` for regressors,
        ``outputs`` for networks.

    Examples
    --------
    Prediction needs only onnxruntime and NumPy::

        to_onnx(classifier, "model.onnx")

        session = onnxruntime.InferenceSession("model.onnx")
        probabilities, label = session.run(None, {"X": x.astype(np.float32)})
    """
    onnx = _import_onnx()
    predictor = _as_predictor(model)
    graph = _Graph(onnx, predictor.dtype)
    rows = graph.add("Transpose", _scaled(graph, predictor), perm=[1, 0])
    place = np.arange(predictor.n_features)  # row of each neuron of the layer before
    for layer in predictor.layers:
        rows, place = _layer(graph, rows, place, layer)
    z = graph.add(
        "Transpose", graph.add("Gather", rows, graph.constant(place), axis=0), perm=[1, 0]
    )
    _add_predictions(graph, predictor, z)
    made = graph.finish(predictor)
    if path is not None:
        size = sum(layer.weights.nbytes + 4 * layer.weights.size for layer in predictor.layers)
        external = {"save_as_external_data": True, "location": f"{Path(path).name}.data"}
        onnx.save_model(made, str(path), **(external if size > LARGE_BYTES else {}))
    return made


class _Graph:
    """Nodes and constants, in the order they are added."""

    def __init__(self, onnx: Any, dtype: np.dtype[Any]) -> None:
        self.onnx, self.dtype = onnx, dtype
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[Any] = []

    def add(self, kind: str, *inputs: str, named: str | None = None, **attributes: Any) -> str:
        """Add an operator and return the name of its output."""
        name = named or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, array: Any, *, typed: bool = False) -> str:
        """Add an array and return its name; ``typed`` converts it to the dtype of the network."""
        name = f"constant_{len(self.constants)}"
        values = np.asarray(array, dtype=self.dtype) if typed else np.asarray(array)
        self.constants.append(self.onnx.numpy_helper.from_array(values, name))
        return name

    def output(self, name: str, dtype: Any, *shape: int) -> None:
        """Declare an output of the model; its first axis is samples."""
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.outputs.append(self.onnx.helper.make_tensor_value_info(name, kind, ["n", *shape]))

    def finish(self, predictor: Predictor) -> Any:
        """Return the whole model."""
        helper = self.onnx.helper
        kind = helper.np_dtype_to_tensor_dtype(self.dtype)
        x = helper.make_tensor_value_info("X", kind, ["n", predictor.n_features])
        graph = helper.make_graph(self.nodes, "ratoon", [x], self.outputs, self.constants)
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="ratoon",
            producer_version=version("ratoon"),
        )
        count = sum(layer.weights.size for layer in predictor.layers)
        helper.set_model_props(model, {"connections": str(count)})
        return model


def _scaled(graph: _Graph, predictor: Predictor) -> str:
    x = "X"
    if predictor.shift is not None:
        x = graph.add("Sub", x, graph.constant(predictor.shift, typed=True))
    if predictor.scale is not None:
        x = graph.add("Mul", x, graph.constant(predictor.scale, typed=True))
    if predictor.clip > 0:
        ends = (graph.constant(end, typed=True) for end in (-predictor.clip, predictor.clip))
        x = graph.add("Clip", x, *ends)
    return x


def _layer(graph: _Graph, rows: str, place: Array, layer: PlainLayer) -> tuple[str, Array]:
    """Add a layer; return its activations, and the row of each output in them."""
    groups = group_outputs(np.diff(layer.starts))
    degrees = np.diff(layer.starts)
    n_padded = sum(group.size * max(int(degrees[group].max()), 1) for group in groups)
    if 2 * n_padded >= layer.n_in * layer.n_out:
        parts = [_dense_product(graph, rows, place, layer)]
        order = np.arange(layer.n_out)
    else:
        parts = [_sparse_product(graph, rows, place, layer, group) for group in groups]
        order = np.concatenate(groups)
    z = parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=0)
    z = graph.add("Add", z, graph.constant(layer.bias[order, None], typed=True))
    found = np.empty_like(order)
    found[order] = np.arange(order.size)
    return ACTIVATIONS[layer.activation].onnx(graph, z, layer.slope), found


def group_outputs(degrees: Array) -> list[Array]:
    """Group outputs by their number of connections, so that padding adds less than a third.

    Examples
    --------
    >>> [group.tolist() for group in group_outputs(np.array([3, 40, 4, 41, 3]))]
    [[0, 4, 2], [1, 3]]
    """
    order = np.argsort(degrees, kind="stable")
    ascending = np.maximum(degrees[order], 1)
    groups, first = [], 0
    while first < order.size:
        limit = max(WIDENING * ascending[first], ascending[first] + 1)
        last = int(np.searchsorted(ascending, limit, side="right"))
        groups.append(order[first:last])
        first = last
    return groups


def _sparse_product(graph: _Graph, rows: str, place: Array, layer: PlainLayer, group: Array) -> str:
    degrees = np.diff(layer.starts)[group]
    width = max(int(degrees.max()), 1)
    inputs = np.zeros((group.size, width), dtype=np.int32)
    weights = np.zeros((group.size, 1, width), dtype=graph.dtype)
    row = np.repeat(np.arange(group.size), degrees)
    column = np.arange(row.size) - np.repeat(np.cumsum(degrees) - degrees, degrees)
    slots = np.repeat(layer.starts[group], degrees) + column
    inputs[row, column] = place[layer.inputs[slots]]
    weights[row, 0, column] = layer.weights[slots]
    picked = graph.add("Gather", rows, graph.constant(inputs), axis=0)
    summed = graph.add("MatMul", graph.constant(weights), picked)
    return graph.add("Squeeze", summed, graph.constant(np.array([1])))


def _dense_product(graph: _Graph, rows: str, place: Array, layer: PlainLayer) -> str:
    """Multiply by a full matrix, for layers that are almost dense."""
    weights = np.zeros((layer.n_out, layer.n_in), dtype=graph.dtype)
    outputs = np.repeat(np.arange(layer.n_out), np.diff(layer.starts))
    weights[outputs, place[layer.inputs]] = layer.weights
    return graph.add("MatMul", graph.constant(weights), rows)


def _add_predictions(graph: _Graph, predictor: Predictor, z: str) -> None:
    """Add the operators that turn raw outputs into predictions."""
    n_out = predictor.layers[-1].n_out
    if "classes" in predictor.arrays:
        _add_classes(graph, predictor, z, n_out)
    elif "target_mean" in predictor.arrays:
        std = graph.constant(predictor.arrays["target_std"], typed=True)
        mean = graph.constant(predictor.arrays["target_mean"], typed=True)
        graph.add("Add", graph.add("Mul", z, std), mean, named="prediction")
        graph.output("prediction", graph.dtype, n_out)
    else:
        graph.add("Identity", z, named="outputs")
        graph.output("outputs", graph.dtype, n_out)


def _add_classes(graph: _Graph, predictor: Predictor, z: str, n_out: int) -> None:
    if predictor.reading == "softmax":
        graph.add("Softmax", z, axis=1, named="probabilities")
    else:
        scores = _label_scores(graph, predictor, z)
        if predictor.is_multilabel:
            graph.add("Identity", scores, named="probabilities")
        else:
            axis = graph.constant(np.array([1]))
            total = graph.add("ReduceSum", scores, axis, keepdims=1)
            is_zero = graph.add("Equal", total, graph.constant(0.0, typed=True))
            equal = graph.constant(1.0 / n_out, typed=True)
            graph.add(
                "Where", is_zero, equal, graph.add("Div", scores, total), named="probabilities"
            )
    graph.output("probabilities", graph.dtype, n_out)
    if predictor.is_multilabel:
        positive = graph.add("Greater", z, graph.constant(0.0, typed=True))
        graph.add("Cast", positive, to=graph.onnx.TensorProto.INT64, named="label")
        graph.output("label", np.int64, n_out)
    else:
        classes = predictor.arrays["classes"]
        if classes.dtype.kind == "U":
            classes = classes.astype(object)
        best = graph.add("ArgMax", z, axis=1, keepdims=0)
        graph.add("Gather", graph.constant(classes), best, axis=0, named="label")
        graph.output("label", classes.dtype)


def _label_scores(graph: _Graph, predictor: Predictor, z: str) -> str:
    if predictor.reading != "margin":
        return graph.add("Sigmoid", z)
    half = graph.constant(0.5, typed=True)
    scores = graph.add("Add", graph.add("Mul", z, half), half)
    ends = (graph.constant(end, typed=True) for end in (0.0, 1.0))
    return graph.add("Clip", scores, *ends)


def _as_predictor(model: Any) -> Predictor:
    predictor = _predictor_of(model)
    if predictor.preparation is not None:
        raise InvalidInputError(
            f"this model prepares its samples ({', '.join(predictor.preparation.describe())}),"
            " which an ONNX file does not hold.\n"
            "  Prepare the samples yourself and train without `prepare`, or predict with"
            " ratoon.inference.Predictor, which prepares them."
        )
    return predictor


def _predictor_of(model: Any) -> Predictor:
    if isinstance(model, Predictor):
        return model
    if isinstance(model, str | Path):
        return Predictor.load(model)
    if not hasattr(model, "network_") and not hasattr(model, "layers"):
        raise InvalidInputError(
            f"`model` must be a fitted estimator, a network or the path of a saved one, got"
            f" {model!r}."
        )
    return Predictor.of(model)


def _import_onnx() -> Any:
    try:
        import onnx
    except ImportError:
        raise ImportError(
            "export to ONNX needs the package onnx: pip install 'ratoon[onnx]'."
        ) from None
    return onnx
