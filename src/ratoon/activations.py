"""The table of activations: what each of them is called, and what it computes.

The compiled code looks activations up by the names of this table.  A new one needs a row here, its
kernel in ``native/isa/activations.hpp`` and its twin in `ratoon.kernels.reference.activations`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ratoon.arrays import Array


class GraphBuilder(Protocol):
    """What an activation needs to add itself to an ONNX graph."""

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator and return the name of its output."""
        ...

    def constant(self, array: Any, *, typed: bool = False) -> str:
        """Add a constant, ``typed`` if it has the number type of the network."""
        ...


@dataclass(frozen=True)
class Activation:
    """One activation.

    Parameters
    ----------
    function : callable
        From inputs and the slope to outputs, with NumPy.  For prediction without compiled code.
    onnx : callable
        Adds the activation to an ONNX graph: builder, name of the input and slope to the name of
        the output.
    slope : float, default=0.0
        Slope of the negative side unless another is given.
    alternates : bool, default=False
        Whether the slope has the opposite sign in the 1st, 3rd, 5th ... hidden layer.
    """

    function: Callable[[Array, float], Array]
    onnx: Callable[[GraphBuilder, str, float], str]
    slope: float = 0.0
    alternates: bool = False


def sigmoid(z: Array) -> Array:
    """Return ``1 / (1 + exp(-z))``.

    Examples
    --------
    >>> sigmoid(np.array([-1000.0, 0.0]))
    array([0. , 0.5])
    """
    # tanh does not overflow.
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * z)), dtype=z.dtype)


def _leaky(z: Array, slope: float) -> Array:
    return np.where(z < 0, z.dtype.type(slope) * z, z)


def _leaky_onnx(graph: GraphBuilder, z: str, slope: float) -> str:
    negative = graph.add("Less", z, graph.constant(0.0, typed=True))
    return graph.add("Where", negative, graph.add("Mul", z, graph.constant(slope, typed=True)), z)


def _elu(z: Array, slope: float) -> Array:
    return np.where(z < 0, z.dtype.type(slope) * np.expm1(np.minimum(z, 0)), z)


def _elu_onnx(graph: GraphBuilder, z: str, slope: float) -> str:
    # onnxruntime has no Elu for float64.
    negative = graph.add("Less", z, graph.constant(0.0, typed=True))
    below = graph.add("Sub", graph.add("Exp", z), graph.constant(1.0, typed=True))
    return graph.add(
        "Where", negative, graph.add("Mul", below, graph.constant(slope, typed=True)), z
    )


def _silu_onnx(graph: GraphBuilder, z: str, slope: float) -> str:
    # onnxruntime 1.26 fuses z * Sigmoid(z) to an operator that it does not have for float64.
    above = graph.add("Add", graph.add("Exp", graph.add("Neg", z)), graph.constant(1.0, typed=True))
    return graph.add("Div", z, above)


def _capped(cap: float) -> Activation:
    return Activation(
        lambda z, _: np.clip(z, 0, z.dtype.type(cap)),
        lambda graph, z, _: graph.add(
            "Clip", z, graph.constant(0.0, typed=True), graph.constant(cap, typed=True)
        ),
    )


ACTIVATIONS = {
    "identity": Activation(lambda z, _: z, lambda graph, z, _: z),
    "relu": Activation(lambda z, _: np.maximum(z, 0), lambda graph, z, _: graph.add("Relu", z)),
    "leaky_relu": Activation(_leaky, _leaky_onnx, slope=0.01),
    "tanh": Activation(lambda z, _: np.tanh(z), lambda graph, z, _: graph.add("Tanh", z)),
    "logistic": Activation(lambda z, _: sigmoid(z), lambda graph, z, _: graph.add("Sigmoid", z)),
    "all_relu": Activation(_leaky, _leaky_onnx, slope=0.6, alternates=True),
    "silu": Activation(lambda z, _: z * sigmoid(z), _silu_onnx),
    "elu": Activation(_elu, _elu_onnx, slope=1.0),
    "relu6": _capped(6.0),
    "relu32": _capped(32.0),
}
"""Activations by name."""
