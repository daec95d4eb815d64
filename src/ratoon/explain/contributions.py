"""Contributions: an output of a network divided among the features of a sample.

The contributions of a sample and the output for the baseline sum up to the output for the sample.
Both methods need one or several passes over the connections, never a dense layer.

``"rescale"`` follows a change back from the output: every neuron passes on the quotient of the
change of its activation and the change of its input (the rescale rule of DeepLIFT, Shrikumar et
al., ICML 2017).  With linear activations the result is the weight times the change of the feature,
which is the Shapley value; with one hidden layer it equals integrated gradients without any error
of integration.

``"integrated"`` averages the gradient over the straight line from baseline to sample (integrated
gradients, Sundararajan et al., ICML 2017) with the midpoint rule, so its sum has an error that
falls with the number of steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.errors import InvalidParameterError
from ratoon.kernels import Scaling
from ratoon.kernels.linear import activate, derive
from ratoon.kernels.types import DERIVED_FROM_INPUT
from ratoon.layers import SparseLayer
from ratoon.memory import require_memory
from ratoon.network import SparseMLP
from ratoon.samples.base import Samples

METHODS = ("rescale", "integrated")

Float = NDArray[np.float64]

_BLOCK_BYTES = 32 * 2**20
_SMALLEST_CHANGE = 1e-7
_ROW_COPIES = 6  # of a sample and its contributions, while they are computed
"""Relative change of a neuron's input below which the slope between the two is the derivative."""


def contributions(
    network: SparseMLP,
    x: Samples,
    mixing: Float,
    *,
    baseline: Float | None = None,
    method: str = "rescale",
    n_steps: int = 50,
    layer: int = 0,
) -> tuple[Any, Float]:
    """Divide one combination of the outputs per sample among the features.

    Parameters
    ----------
    network : SparseMLP
        A trained network.
    x : Samples
        Rows of features.
    mixing : ndarray of shape (n_samples, n_outputs)
        Which combination of the raw outputs is explained, sample by sample.
    baseline : ndarray of shape (n_baselines, n_features), optional
        Samples to compare with; contributions are averaged over them.  The default is one baseline
        that the network reads as zeros: the means of training, or zeros if it does not centre.
    method : {"rescale", "integrated"}
        See the module.
    n_steps : int
        Number of points on the line of ``"integrated"``.
    layer : int
        0 for contributions of features; 1 for those of the neurons of the first layer, and so on,
        by ``"rescale"`` alone.

    Returns
    -------
    values : ndarray or CSR array of shape (n_samples, n_features)
        The contributions.  For sparse samples and a baseline of zeros they are sparse, too: a
        feature that is 0 does not contribute.
    base : ndarray of shape (n_samples,)
        The same combination of the outputs for the baseline, averaged over the baselines.
    """
    if method not in METHODS:
        raise InvalidParameterError(f"`method` must be one of {METHODS}, got {method!r}.")
    n_rows, n_features = x.shape
    passes = [_Layer.of(layer) for layer in network.layers]
    shift = network.scaling.shift
    width = network.widths[layer]
    stays_sparse = x.is_sparse and baseline is None and shift is None and layer == 0
    if baseline is None:
        references = np.zeros((1, n_features))
    else:
        references = _scaled(baseline, network.scaling)
    require_memory(
        8 * (_ROW_COPIES * (n_features + width) + (0 if stays_sparse else n_rows * width)),
        f"a contribution of each of the {width:,} features to each of {n_rows:,} outputs",
        "Explain fewer samples at a time.",
    )
    traces = [_trace(passes, reference[None, :]) for reference in references]
    values = None if stays_sparse else np.zeros((n_rows, width))
    parts: list[Any] = []
    base = np.zeros(n_rows)
    for rows in _blocks(n_rows, [n_features, *network.widths[1:]]):
        z = _scaled(x.dense(rows), network.scaling)
        total = np.zeros((z.shape[0], width))
        for reference, trace in zip(references, traces, strict=True):
            base[rows] += mixing[rows] @ trace.outputs[0] / len(references)
            if method == "rescale":
                here = _trace(passes, z)
                change = z - reference
                if layer > 0:
                    change = here.activations[layer - 1] - trace.activations[layer - 1]
                total += _rescaled(passes, here, trace, mixing[rows], layer) * change
            else:
                total += _integrated(passes, z, reference, mixing[rows], n_steps)
        total /= len(references)
        if values is None:
            parts.append(scipy.sparse.csr_array(total))
        else:
            values[rows] = total
    return (scipy.sparse.vstack(parts, format="csr") if values is None else values), base


@dataclass(frozen=True, eq=False)
class _Layer:
    """A layer as a SciPy matrix of inputs x outputs, in double precision."""

    matrix: Any
    bias: Float
    activation: str
    slope: float

    @classmethod
    def of(cls, layer: SparseLayer) -> _Layer:
        matrix = layer.to_csr().astype(np.float64)
        return cls(matrix, layer.bias.astype(np.float64), layer.activation, layer.slope)

    def inputs_of_neurons(self, h: Float) -> Float:
        return np.asarray((self.matrix.T @ h.T).T + self.bias)

    def activated(self, a: Float) -> Float:
        h = np.ascontiguousarray(a).copy()
        activate(self.activation, h.reshape(-1), slope=self.slope)
        return h

    def derivative(self, a: Float) -> Float:
        at = a if self.activation in DERIVED_FROM_INPUT else self.activated(a)
        slopes = np.ones(a.shape)
        derive(
            self.activation,
            np.ascontiguousarray(at).reshape(-1),
            slopes.reshape(-1),
            slope=self.slope,
        )
        return slopes


@dataclass(frozen=True, eq=False)
class _Trace:
    """Inputs and activations of the neurons of every layer; rows are samples."""

    inputs: list[Float]
    activations: list[Float]

    @property
    def outputs(self) -> Float:
        return self.activations[-1]


def _trace(layers: list[_Layer], z: Float) -> _Trace:
    inputs, activations, h = [], [], z
    for layer in layers:
        inputs.append(layer.inputs_of_neurons(h))
        h = layer.activated(inputs[-1])
        activations.append(h)
    return _Trace(inputs, activations)


def _rescaled(
    layers: list[_Layer], here: _Trace, there: _Trace, mixing: Float, first: int
) -> Float:
    """Return by how much the explained output changes per change of every feature."""
    factor = mixing
    for index in range(len(layers) - 1, first - 1, -1):
        layer, a, a0 = layers[index], here.inputs[index], there.inputs[index]
        change = a - a0
        is_small = np.abs(change) <= _SMALLEST_CHANGE * (np.abs(a) + np.abs(a0)) + 1e-300
        rise = here.activations[index] - there.activations[index]
        slopes = np.divide(rise, change, out=np.zeros_like(rise), where=~is_small)
        if is_small.any():
            slopes = np.where(is_small, layer.derivative(0.5 * (a + a0)), slopes)
        factor = np.asarray((layer.matrix @ (factor * slopes).T).T)
    return factor


def _integrated(
    layers: list[_Layer], z: Float, reference: Float, mixing: Float, n_steps: int
) -> Float:
    total = np.zeros(z.shape)
    for step in range(n_steps):
        place = (step + 0.5) / n_steps
        trace = _trace(layers, reference + place * (z - reference))
        factor = mixing
        for layer, a in zip(reversed(layers), reversed(trace.inputs), strict=True):
            factor = np.asarray((layer.matrix @ (factor * layer.derivative(a)).T).T)
        total += factor
    return np.asarray(total / n_steps * (z - reference))


def _scaled(rows: Array, scaling: Scaling) -> Float:
    """Return rows as the network reads them."""
    z = np.asarray(rows, dtype=np.float64)
    if scaling.shift is not None:
        z = z - scaling.shift
    if scaling.scale is not None:
        z = z * scaling.scale
    return np.clip(z, -scaling.clip, scaling.clip) if scaling.clip > 0 else z


def _blocks(n_rows: int, widths: list[int]) -> list[slice]:
    """Return slices of rows such that a few copies of all their neurons fit `_BLOCK_BYTES`."""
    n_at_once = max(1, _BLOCK_BYTES // (8 * 4 * sum(widths)))
    return [slice(first, min(first + n_at_once, n_rows)) for first in range(0, n_rows, n_at_once)]
