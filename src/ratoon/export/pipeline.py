"""Export of pipelines to ONNX: converters of ratoon's estimators for skl2onnx."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from ratoon.errors import InvalidInputError
from ratoon.export.graph import Graph, add_network, import_onnx
from ratoon.inference import Predictor

_LEAST_OPSET = 13
_OF_WEIGHTS = "weights"


def register_converters() -> None:
    """Let skl2onnx convert ratoon's classifiers, regressors and selectors.

    `to_onnx` does this itself.  Call it before ``skl2onnx.to_onnx``, which then converts pipelines
    and meta-estimators that contain them.

    Examples
    --------
    Convert with skl2onnx and its options::

        register_converters()
        skl2onnx.to_onnx(pipeline, X[:1], options={"zipmap": False})
    """
    _import_skl2onnx()
    from skl2onnx import update_registered_converter

    # The estimators are above this package, and import it.
    estimators = import_module("ratoon.estimators")
    update_registered_converter(
        estimators.SparseMLPClassifier,
        "RatoonClassifier",
        _classifier_outputs,
        _convert_network,
        options={
            "zipmap": [True, False, "columns"],
            "raw_scores": [True, False],
            _OF_WEIGHTS: [None, "bfloat16", "int8"],
        },
    )
    update_registered_converter(
        estimators.SparseMLPRegressor,
        "RatoonRegressor",
        _regressor_outputs,
        _convert_network,
        options={_OF_WEIGHTS: [None, "bfloat16", "int8"]},
    )
    for name in ("SparseFeatureSelector", "SparseAutoencoderSelector"):
        update_registered_converter(
            getattr(estimators, name), f"Ratoon{name}", _selector_outputs, _convert_selector
        )
    update_registered_converter(
        import_module("sklearn.impute").MissingIndicator,
        "RatoonMissingIndicator",
        _indicator_outputs,
        _convert_indicator,
    )


def convert(
    model: Any, *, X: Any = None, weights: str | None = None, options: Mapping[Any, Any] | None
) -> Any:
    """Return the ONNX model of a pipeline; probabilities are one array, not dictionaries."""
    register_converters()
    import skl2onnx

    parts = _parts(model)
    networks = [part for part in parts if hasattr(part, "_target_state")]
    chosen: dict[Any, Any] = {}
    if hasattr(model, "classes_") or hasattr(model, "predict_proba"):
        chosen[id(model)] = {"zipmap": False}
    for network in networks:
        of_it = {_OF_WEIGHTS: weights}
        if hasattr(network, "classes_"):
            of_it["zipmap"] = False  # type: ignore[assignment]
        chosen[id(network)] = of_it
    inputs = [("X", _input_type(model, networks))] if X is None else _table_types(X, parts)
    sample = X[:1] if inputs is None else None
    try:
        return skl2onnx.to_onnx(
            model,
            sample,
            initial_types=inputs,
            options={**chosen, **dict(options or {})},
        )
    except skl2onnx.common.exceptions.MissingShapeCalculator as error:
        raise InvalidInputError(f"skl2onnx cannot convert this model: {error}") from None


def _parts(model: Any) -> list[Any]:
    """Return the fitted estimators inside another one, and itself."""
    found: list[Any] = []
    waiting = [model]
    while waiting:
        part = waiting.pop()
        if isinstance(part, list | tuple):
            waiting += part
        elif isinstance(part, type):
            continue
        elif hasattr(part, "get_params") or type(part).__module__.startswith("sklearn."):
            if any(part is other for other in found):
                continue
            found.append(part)
            waiting += list(getattr(part, "__dict__", {}).values())
    return found


def _input_type(model: Any, networks: list[Any]) -> Any:
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    n_features = getattr(model, "n_features_in_", None)
    if n_features is None:
        raise InvalidInputError(
            f"to_onnx: the number of features of this {type(model).__name__} is not known; is it"
            f" fitted?\n  Pass some samples as X."
        )
    double = any(
        getattr(part, "network_", None) is not None and part.network_.dtype == np.float64
        for part in networks
    )
    return (DoubleTensorType if double else FloatTensorType)([None, int(n_features)])


def _table_types(X: Any, parts: list[Any]) -> Any:
    """Return an input per column of a table with text or missing values; None for other samples.

    Numbers are float32, as onnxruntime fills missing values in these only.
    """
    if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
        return None
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    are_numbers = [getattr(kind, "kind", "O") in "biuf" for kind in X.dtypes]
    if all(are_numbers) and not any(type(part).__name__ == "SimpleImputer" for part in parts):
        return None  # skl2onnx knows these
    return [
        (str(name), (FloatTensorType if is_number else StringTensorType)([None, 1]))
        for name, is_number in zip(X.columns, are_numbers, strict=True)
    ]


# ------------------------------------------------------------------------------------ converters


class _ContainerGraph(Graph):
    """Adds operators to a graph of skl2onnx, under names of its own."""

    def __init__(
        self,
        scope: Any,
        container: Any,
        dtype: np.dtype[Any],
        outputs: dict[str, str],
        weights: str | None,
    ) -> None:
        super().__init__(import_onnx(), dtype, weights)
        self._scope, self._container, self._names = scope, container, outputs

    def add(self, kind: str, *inputs: str, named: str | None = None, **attributes: Any) -> str:
        name = self._names.get(named or "") or self._scope.get_unique_variable_name(kind.lower())
        self._container.add_node(kind, list(inputs), [name], **attributes)
        return name

    def constant(self, array: Any, *, typed: bool = False) -> str:
        super().constant(array, typed=typed)
        return self._moved()

    def tensor(self, array: Any, kind: str) -> str:
        super().constant(array)
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(array)))
        self.constants[-1].data_type = getattr(self.onnx.TensorProto, kind)
        return self._moved()

    def _moved(self) -> str:
        """Move the last constant to the container."""
        tensor = self.constants.pop()
        name: str = self._scope.get_unique_variable_name("constant")
        if tensor.string_data:
            content = list(tensor.string_data)
            self._container.add_initializer(name, tensor.data_type, list(tensor.dims), content)
        else:
            self._container.add_initializer(name, None, None, tensor)
        return name

    def output(self, name: str, dtype: Any, *shape: int) -> None:
        del name, dtype, shape  # declared by the shape functions


def _convert_network(scope: Any, operator: Any, container: Any) -> None:
    model = operator.raw_operator
    if container.target_opset < _LEAST_OPSET:
        raise InvalidInputError(f"to_onnx: `target_opset` must be at least {_LEAST_OPSET}.")
    predictor = Predictor.of(model)
    named = (
        {"prediction": 0} if "target_mean" in predictor.arrays else {"label": 0, "probabilities": 1}
    )
    outputs = {name: operator.outputs[place].full_name for name, place in named.items()}
    chosen = container.get_options(model, fail=False) or {}
    weights, scores = chosen.get(_OF_WEIGHTS), bool(chosen.get("raw_scores"))
    numbers = next(name for name in outputs if name != "label")
    computed = {**outputs, numbers: scope.get_unique_variable_name(numbers)}
    graph = _ContainerGraph(scope, container, predictor.dtype, computed, weights)
    # Steps before and after the network may compute in another number type.
    types = graph.onnx.helper.np_dtype_to_tensor_dtype
    x = graph.add("Cast", operator.inputs[0].full_name, to=types(predictor.dtype))
    add_network(graph, predictor, x, scores=scores)
    is_double = _is_double(operator)
    to = types(np.dtype(np.float64 if is_double else np.float32))
    container.add_node("Cast", [computed[numbers]], [outputs[numbers]], to=to)


def _convert_selector(scope: Any, operator: Any, container: Any) -> None:
    del scope
    from skl2onnx.proto import onnx_proto

    kept = operator.raw_operator.get_support(indices=True).astype(np.int64)
    name = f"{operator.outputs[0].full_name}_kept"
    container.add_initializer(name, onnx_proto.TensorProto.INT64, [kept.size], kept.tolist())
    container.add_node(
        "Gather", [operator.inputs[0].full_name, name], operator.outputs[0].full_name, axis=1
    )


def _convert_indicator(scope: Any, operator: Any, container: Any) -> None:
    from skl2onnx.proto import onnx_proto

    indicator = operator.raw_operator
    if not np.isnan(indicator.missing_values):
        raise InvalidInputError(
            f"to_onnx: a MissingIndicator of {indicator.missing_values!r} is not supported; of NaN"
            f" it is."
        )
    marked = np.asarray(indicator.features_, dtype=np.int64)
    columns, chosen, missing = map(
        scope.get_unique_variable_name, ("columns", "chosen", "is_missing")
    )
    container.add_initializer(columns, onnx_proto.TensorProto.INT64, [marked.size], marked.tolist())
    container.add_node("Gather", [operator.inputs[0].full_name, columns], chosen, axis=1)
    container.add_node("IsNaN", [chosen], missing)
    to = onnx_proto.TensorProto.DOUBLE if _is_double(operator) else onnx_proto.TensorProto.FLOAT
    container.add_node("Cast", [missing], [operator.outputs[0].full_name], to=to)


# --------------------------------------------------------------------------------- output shapes


def _is_double(operator: Any) -> bool:
    from skl2onnx.common.data_types import DoubleTensorType

    return isinstance(operator.inputs[0].type, DoubleTensorType)


def _real(operator: Any) -> Any:
    """Return the type of numbers as outputs: that of the inputs, as skl2onnx expects."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    return DoubleTensorType if _is_double(operator) else FloatTensorType


def _classifier_outputs(operator: Any) -> None:
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    model = operator.raw_operator
    _refuse_unfitted(model)
    n_rows, n_outputs = operator.inputs[0].get_first_dimension(), len(model.classes_)
    if model._multilabel:
        operator.outputs[0].type = Int64TensorType([n_rows, n_outputs])
    elif model.classes_.dtype.kind in "OU":
        operator.outputs[0].type = StringTensorType([n_rows])
    elif model.classes_.dtype.kind == "f":
        raise InvalidInputError(
            "to_onnx: classes that are fractions have no type in a pipeline of skl2onnx.\n"
            "  Train with whole numbers or text as classes, or export the estimator alone."
        )
    else:
        operator.outputs[0].type = Int64TensorType([n_rows])
    operator.outputs[1].type = _real(operator)([n_rows, n_outputs])


def _regressor_outputs(operator: Any) -> None:
    model = operator.raw_operator
    _refuse_unfitted(model)
    shape = [operator.inputs[0].get_first_dimension(), model.network_.widths[-1]]
    operator.outputs[0].type = _real(operator)(shape)


def _selector_outputs(operator: Any) -> None:
    kind = type(operator.inputs[0].type)
    n_kept = int(operator.raw_operator.get_support().sum())
    operator.outputs[0].type = kind([operator.inputs[0].get_first_dimension(), n_kept])


def _indicator_outputs(operator: Any) -> None:
    shape = [operator.inputs[0].get_first_dimension(), len(operator.raw_operator.features_)]
    operator.outputs[0].type = _real(operator)(shape)


def _refuse_unfitted(model: Any) -> None:
    if not hasattr(model, "network_"):
        raise InvalidInputError(f"to_onnx: this {type(model).__name__} is not fitted.")


def _import_skl2onnx() -> None:
    try:
        import skl2onnx  # noqa: F401
    except ImportError:
        raise ImportError(
            "export of pipelines to ONNX needs the package skl2onnx: pip install 'ratoon[onnx]'."
        ) from None
