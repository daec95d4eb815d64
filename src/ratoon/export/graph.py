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

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from ratoon.activations import ACTIVATIONS
from ratoon.arrays import Array
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.inference import PlainLayer, Predictor

OPSET = 17
IR_VERSION = 8
WIDENING = 1.3
"""Largest ratio of the numbers of connections of two outputs in the same group."""
WEIGHTS = ("bfloat16", "int8")
LARGE_BYTES = 1_500_000_000
"""Above this size weights are written to a second file, because one file is limited to 2 GB."""


def to_onnx(
    model: Any,
    path: str | Path | None = None,
    *,
    weights: str | None = None,
    X: Any = None,
    options: Mapping[Any, Any] | None = None,
) -> Any:
    """Export a trained model or a pipeline to ONNX, without making networks dense.

    Parameters
    ----------
    model : estimator, SparseMLP, Predictor, path of a saved estimator, or pipeline
        The model to export.  A pipeline, or any other estimator of scikit-learn that contains one
        of ratoon, needs the package skl2onnx.
    path : path, optional
        File to write; without it the model is only returned.
    weights : {"bfloat16", "int8"}, optional
        Store weights in 16 bits, or in 8 with one factor per neuron.  Files are smaller; run-times
        compute in the number type of the network all the same.
    X : array or table, optional
        Samples whose types are those of the inputs of the model.  Needed where a pipeline selects
        columns by name.
    options : dict, optional
        Of skl2onnx, for a pipeline.

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

    Scaling, selection and other steps before the network become part of the file::

        to_onnx(make_pipeline(QuantileTransformer(), SparseMLPClassifier()).fit(X, y), "all.onnx")
    """
    onnx = import_onnx()
    check_weights(weights)
    if _needs_skl2onnx(model):
        from ratoon.export.pipeline import convert

        made = convert(model, X=X, weights=weights, options=options)
    else:
        for name, value in (("X", X), ("options", options)):
            if value is not None:
                raise InvalidParameterError(
                    f"to_onnx: `{name}` is for pipelines; this is a {type(model).__name__}."
                )
        predictor = _as_predictor(model)
        graph = Graph(onnx, predictor.dtype, weights)
        add_network(graph, predictor, "X")
        made = graph.finish(predictor)
    if path is not None:
        external = {"save_as_external_data": True, "location": f"{Path(path).name}.data"}
        is_large = made.ByteSize() > LARGE_BYTES
        onnx.save_model(made, str(path), **(external if is_large else {}))
    return made


def check_weights(weights: Any) -> None:
    """Raise unless this is a way to store weights."""
    if weights is not None and not (isinstance(weights, str) and weights in WEIGHTS):
        raise InvalidParameterError(
            f"to_onnx: `weights` must be None or one of {WEIGHTS}, got {weights!r}."
        )


def add_network(graph: Graph, predictor: Predictor, x: str, *, scores: bool = False) -> None:
    """Add all operators from samples to predictions.

    With ``scores`` a classifier has its decision function in place of probabilities.
    """
    rows = graph.add("Transpose", _scaled(graph, predictor, x), perm=[1, 0])
    place = np.arange(predictor.n_features)  # row of each neuron of the layer before
    for layer in predictor.layers:
        rows, place = _layer(graph, rows, place, layer)
    z = graph.add(
        "Transpose", graph.add("Gather", rows, graph.constant(place), axis=0), perm=[1, 0]
    )
    _add_predictions(graph, predictor, z, scores=scores)


class Graph:
    """Nodes and constants, in the order they are added."""

    def __init__(self, onnx: Any, dtype: np.dtype[Any], weights: str | None = None) -> None:
        self.onnx, self.dtype, self.weight_type = onnx, dtype, weights
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

    def weights(self, array: Array) -> str:
        """Return the name of an array of weights, whose first axis is outputs."""
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(self.dtype)
        if self.weight_type == "bfloat16":
            halves = rounded_to_bfloat16(array)
            return self.add("Cast", self.tensor(halves, "BFLOAT16"), to=kind)
        if self.weight_type == "int8":
            steps, factors = in_eight_bits(array)
            numbers = self.add("Cast", self.constant(steps), to=kind)
            return self.add("Mul", numbers, self.constant(factors, typed=True))
        return self.constant(array, typed=True)

    def indices(self, array: Array) -> str:
        """Return the name of an array of indices, in 16 bits where weights are stored in fewer."""
        if self.weight_type is None or array.size == 0 or int(array.max()) >= 2**16:
            return self.constant(array.astype(np.int32))
        whole = self.onnx.TensorProto.INT32
        return self.add("Cast", self.constant(array.astype(np.uint16)), to=whole)

    def tensor(self, array: Array, kind: str) -> str:
        """Add an array whose bytes are values of another type, and return its name."""
        name = self.constant(array)
        self.constants[-1].data_type = getattr(self.onnx.TensorProto, kind)
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


def rounded_to_bfloat16(array: Array) -> Array:
    """Return the upper halves of float32 numbers, rounded to nearest, ties to even.

    Examples
    --------
    >>> rounded_to_bfloat16(np.array([1.0, -2.0])).tolist()
    [16256, 49152]
    """
    whole = np.ascontiguousarray(array, dtype=np.float32).view(np.uint32).astype(np.uint64)
    return ((whole + 0x7FFF + ((whole >> 16) & 1)) >> 16).astype(np.uint16)


def in_eight_bits(array: Array) -> tuple[Array, Array]:
    """Return whole numbers from -127 to 127 and, for every output, the factor to multiply with.

    Examples
    --------
    >>> steps, factors = in_eight_bits(np.array([[0.5, -1.0], [0.0, 0.0]]))
    >>> steps.tolist(), (steps * factors).round(2).tolist()
    ([[64, -127], [0, 0]], [[0.5, -1.0], [0.0, 0.0]])
    """
    axes = tuple(range(1, array.ndim))
    largest = np.abs(array).max(axis=axes, keepdims=True, initial=0.0)
    factors = np.where(largest > 0, largest / 127.0, 1.0)
    return np.rint(array / factors).astype(np.int8), factors


def _scaled(graph: Graph, predictor: Predictor, x: str) -> str:
    if predictor.shift is not None:
        x = graph.add("Sub", x, graph.constant(predictor.shift, typed=True))
    if predictor.scale is not None:
        x = graph.add("Mul", x, graph.constant(predictor.scale, typed=True))
    if predictor.clip > 0:
        ends = (graph.constant(end, typed=True) for end in (-predictor.clip, predictor.clip))
        x = graph.add("Clip", x, *ends)
    return x


def _layer(graph: Graph, rows: str, place: Array, layer: PlainLayer) -> tuple[str, Array]:
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


def _sparse_product(graph: Graph, rows: str, place: Array, layer: PlainLayer, group: Array) -> str:
    degrees = np.diff(layer.starts)[group]
    width = max(int(degrees.max()), 1)
    inputs = np.zeros((group.size, width), dtype=np.int32)
    weights = np.zeros((group.size, 1, width), dtype=graph.dtype)
    row = np.repeat(np.arange(group.size), degrees)
    column = np.arange(row.size) - np.repeat(np.cumsum(degrees) - degrees, degrees)
    slots = np.repeat(layer.starts[group], degrees) + column
    inputs[row, column] = place[layer.inputs[slots]]
    weights[row, 0, column] = layer.weights[slots]
    picked = graph.add("Gather", rows, graph.indices(inputs), axis=0)
    summed = graph.add("MatMul", graph.weights(weights), picked)
    return graph.add("Squeeze", summed, graph.constant(np.array([1])))


def _dense_product(graph: Graph, rows: str, place: Array, layer: PlainLayer) -> str:
    """Multiply by a full matrix, for layers that are almost dense."""
    weights = np.zeros((layer.n_out, layer.n_in), dtype=graph.dtype)
    outputs = np.repeat(np.arange(layer.n_out), np.diff(layer.starts))
    weights[outputs, place[layer.inputs]] = layer.weights
    return graph.add("MatMul", graph.weights(weights), rows)


def _add_predictions(graph: Graph, predictor: Predictor, z: str, *, scores: bool) -> None:
    """Add the operators that turn raw outputs into predictions."""
    n_out = predictor.layers[-1].n_out
    if "classes" in predictor.arrays:
        _add_classes(graph, predictor, z, n_out, scores=scores)
    elif "target_mean" in predictor.arrays:
        std = graph.constant(predictor.arrays["target_std"], typed=True)
        mean = graph.constant(predictor.arrays["target_mean"], typed=True)
        graph.add("Add", graph.add("Mul", z, std), mean, named="prediction")
        graph.output("prediction", graph.dtype, n_out)
    else:
        graph.add("Identity", z, named="outputs")
        graph.output("outputs", graph.dtype, n_out)


def _add_classes(graph: Graph, predictor: Predictor, z: str, n_out: int, *, scores: bool) -> None:
    if scores:
        _add_scores(graph, predictor, z, n_out)
    elif predictor.reading == "softmax":
        graph.add("Softmax", z, axis=1, named="probabilities")
    else:
        each = _label_scores(graph, predictor, z)
        if predictor.is_multilabel:
            graph.add("Identity", each, named="probabilities")
        else:
            axis = graph.constant(np.array([1]))
            total = graph.add("ReduceSum", each, axis, keepdims=1)
            is_zero = graph.add("Equal", total, graph.constant(0.0, typed=True))
            equal = graph.constant(1.0 / n_out, typed=True)
            graph.add("Where", is_zero, equal, graph.add("Div", each, total), named="probabilities")
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


def _add_scores(graph: Graph, predictor: Predictor, z: str, n_out: int) -> None:
    """Add the decision function; for two classes both signs of it, as skl2onnx expects."""
    if n_out == 2 and not predictor.is_multilabel:
        columns = [graph.add("Gather", z, graph.constant(np.array([k])), axis=1) for k in (0, 1)]
        ways = [graph.add("Sub", *pair) for pair in (columns, columns[::-1])]
        graph.add("Concat", *ways, axis=1, named="probabilities")
    else:
        graph.add("Identity", z, named="probabilities")


def _label_scores(graph: Graph, predictor: Predictor, z: str) -> str:
    if predictor.reading != "margin":
        return graph.add("Sigmoid", z)
    half = graph.constant(0.5, typed=True)
    scores = graph.add("Add", graph.add("Mul", z, half), half)
    ends = (graph.constant(end, typed=True) for end in (0.0, 1.0))
    return graph.add("Clip", scores, *ends)


def _needs_skl2onnx(model: Any) -> bool:
    """Whether a model is an estimator of scikit-learn, such as a pipeline."""
    is_network = hasattr(model, "network_") or hasattr(model, "layers")
    return hasattr(model, "get_params") and not is_network and not hasattr(model, "_target_state")


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


def import_onnx() -> Any:
    """Return the package onnx, or raise an error that says how to install it."""
    try:
        import onnx
    except ImportError:
        raise ImportError(
            "export to ONNX needs the package onnx: pip install 'ratoon[onnx]'."
        ) from None
    return onnx
