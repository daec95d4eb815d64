"""SparseMLP: a multilayer perceptron of sparse layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.kernels import ACTIVATIONS, NativeNetwork, Pace, Scaling, as_samples
from ratoon.kernels.types import checked_dtype
from ratoon.layers import SparseLayer, make_layer
from ratoon.memory import require_memory
from ratoon.rng import derive_seed
from ratoon.samples.in_memory import SparseSamples, wrap
from ratoon.topology import Topology, Within

ALTERNATING = frozenset(name for name, kind in ACTIVATIONS.items() if kind.alternates)
"""Activations whose slope changes its sign from layer to layer."""

_MANY_INPUTS = 2**20
_IDLE_FACTOR = 8


@dataclass(frozen=True)
class LayerSummary:
    """Size and density of one layer, for the summary of a network."""

    n_in: int
    n_out: int
    n_connections: int
    density: float
    megabytes: float


@dataclass(eq=False)
class SparseMLP:
    """A multilayer perceptron of sparse layers, and the scaling of its samples.

    Examples
    --------
    >>> network = SparseMLP.start((100, 50, 3), epsilon=5, seed=0)
    >>> network.widths, network.n_connections
    ((100, 50, 3), 900)
    >>> network.outputs(np.zeros((2, 100), dtype=np.float32)).shape
    (2, 3)
    """

    layers: list[SparseLayer]
    scaling: Scaling = field(default_factory=Scaling)

    def __post_init__(self) -> None:
        for before, after in pairwise(self.layers):
            if before.shape[1] != after.shape[0]:
                raise InvalidInputError(
                    f"a layer of {before.shape[1]} outputs cannot feed one of {after.shape[0]}"
                    f" inputs."
                )

    @classmethod
    def start(
        cls,
        widths: Sequence[int],
        *,
        seed: int,
        epsilon: float | None = None,
        density: float | None = None,
        start: str = "exact",
        init: str = "he",
        output_init: str | None = None,
        activation: str = "relu",
        slope: float = 0.0,
        dropout: float = 0.0,
        topologies: Sequence[Topology | Within | None] | None = None,
        scaling: Scaling | None = None,
        dtype: DTypeLike = np.float32,
        n_threads: int = 1,
    ) -> SparseMLP:
        """Return a random network with the given widths, inputs and outputs included.

        With ``all_relu``, odd and even hidden layers have slopes of opposite sign (Curci et al.
        2021).  ``topologies`` may hold the initial topology or the limit of single layers; None
        draws one.
        """
        kind = checked_dtype(dtype)
        layers = []
        n_layers = len(widths) - 1
        for index, shape in enumerate(pairwise(widths)):
            is_output = index == n_layers - 1
            sign = -1.0 if activation in ALTERNATING and index % 2 == 0 else 1.0
            layers.append(
                make_layer(
                    shape,
                    seed=derive_seed(seed, "layer", index),
                    epsilon=epsilon,
                    density=density,
                    start=start,
                    init=output_init if is_output and output_init else init,
                    topology=topologies[index] if topologies else None,
                    activation="identity" if is_output else activation,
                    slope=sign * slope,
                    dropout=0.0 if is_output else dropout,
                    dtype=dtype,
                    n_threads=n_threads,
                )
            )
        return cls(layers, (scaling or Scaling()).of_type(kind))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the computation."""
        return self.layers[0].bias.dtype

    @property
    def weight_type(self) -> str:
        """Data type of the stored weights: that of the computation, or bfloat16."""
        return "bfloat16" if self.layers[0].is_bfloat16 else self.dtype.name

    @property
    def widths(self) -> tuple[int, ...]:
        """Neurons per layer, inputs and outputs included."""
        return (self.layers[0].shape[0], *(layer.shape[1] for layer in self.layers))

    @property
    def n_connections(self) -> int:
        """The number of connections of all layers."""
        return sum(layer.n_connections for layer in self.layers)

    @property
    def n_positions(self) -> int:
        """The number of connections of a dense network of these widths."""
        return sum(layer.topology.n_positions for layer in self.layers)

    @property
    def density(self) -> float:
        """Connections divided by positions, over all layers."""
        return self.n_connections / self.n_positions

    def native(self, loss: str, n_threads: int, pace: Pace | None = None) -> NativeNetwork:
        """Return the native view of the network, which shares all arrays."""
        native = NativeNetwork(self.dtype, loss, n_threads, pace)
        for layer in self.layers:
            layer.own_arrays()  # native code requires writable arrays
            native.add_layer(
                layer.topology,
                layer.stored,
                layer.bias,
                state=layer.state,
                bias_state=layer.bias_state,
                activation=layer.activation,
                slope=layer.slope,
                dropout=layer.dropout,
            )
        return native

    def outputs(self, x: Any, *, n_threads: int = 1, layer: int | None = None) -> Array:
        """Return raw outputs for samples x features, or the activations of a hidden layer."""
        samples, network = wrap(x), self
        if isinstance(samples, SparseSamples) and self._has_idle_inputs(samples.n_features):
            samples, network = self._of_connected_inputs(samples)
        native = network.native("squared_error", n_threads)
        return native.predict(as_samples(samples, self.dtype), scaling=network.scaling, layer=layer)

    def _has_idle_inputs(self, n_features: int) -> bool:
        """Whether so many inputs lack connections that a prediction would be work for nothing."""
        n_in, n_connections = self.widths[0], self.layers[0].n_connections
        return n_in == n_features and n_in > max(_MANY_INPUTS, _IDLE_FACTOR * n_connections)

    def _of_connected_inputs(self, x: SparseSamples) -> tuple[SparseSamples, SparseMLP]:
        """Return sparse samples and a network for them without inputs that have no connections.

        The outputs are the same, and the cost does not depend on the number of inputs.
        """
        first = self.layers[0]
        inputs, outputs = first.topology.pairs()
        used = np.unique(inputs) if inputs.size else np.zeros(1, dtype=np.int64)
        topology, order = Topology.from_pairs_with_order(
            (used.size, first.shape[1]), np.searchsorted(used, inputs), outputs
        )
        layer = replace(
            first,
            topology=topology,
            stored=first.stored[order],
            state=[],
            bias_state=[],
            allowed=None,
        )
        shift, scale = (
            None if values is None else values[used]
            for values in (self.scaling.shift, self.scaling.scale)
        )
        later = [replace(one, state=[], bias_state=[]) for one in self.layers[1:]]
        scaling = Scaling(shift, scale, self.scaling.clip)
        return x.select_features(used), SparseMLP([layer, *later], scaling)

    def summary(self) -> list[LayerSummary]:
        """Return size and density of every layer."""
        return [
            LayerSummary(
                *layer.shape,
                n_connections=layer.n_connections,
                density=layer.topology.density,
                megabytes=layer.nbytes() / 1e6,
            )
            for layer in self.layers
        ]

    def input_strength(self) -> Array:
        """Return the summed magnitude of the outgoing weights of every input."""
        self.require_memory_of_inputs(8)
        first = self.layers[0]
        return np.bincount(
            first.topology.rows,
            weights=np.abs(first.weights).astype(np.float64),
            minlength=first.shape[0],
        )

    def require_memory_of_inputs(self, n_bytes: int) -> None:
        """Raise unless there is memory for this many bytes per input.

        A small file may hold a network of many inputs, most of them without connections.
        """
        require_memory(
            n_bytes * self.widths[0],
            f"a result for each of the {self.widths[0]:,} inputs of the network",
            "Predictions of sparse samples need memory for connected inputs only.",
        )

    def is_finite(self) -> bool:
        """Whether every weight and bias is a finite number."""
        return all(
            bool(np.isfinite(layer.weights).all() and np.isfinite(layer.bias).all())
            for layer in self.layers
        )

    def copy(self) -> SparseMLP:
        """Return a copy of the network."""
        return SparseMLP([layer.copy() for layer in self.layers], self.scaling)
