"""Networks in a file: their outline in the configuration, and their tensors."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.initialise import INITS
from ratoon.kernels import ACTIVATIONS, Scaling
from ratoon.kernels.bfloat16 import HALF
from ratoon.kernels.types import checked_dtype
from ratoon.layers import SparseLayer
from ratoon.network import SparseMLP
from ratoon.storage.container import Tensor
from ratoon.storage.rules import (
    MAX_LAYERS,
    MAX_STATES,
    MAX_TILE,
    MAX_WIDTH,
    Fields,
    Violation,
    check_halves,
    check_values,
    require,
)
from ratoon.topology import Topology

Shape = tuple[int, int]
NUMBER_CODES = {"float32": "F32", "float64": "F64", "bfloat16": "F32"}
WEIGHT_CODES = {**NUMBER_CODES, "bfloat16": "U16"}
"""bfloat16 is written as integers, which every reader of safetensors supports."""


@dataclass(frozen=True)
class TopologyOutline:
    """A topology without its shape and its arrays."""

    tile_in: int
    tile_out: int
    grouped: bool
    n_connections: int

    @classmethod
    def of(cls, topology: Topology) -> TopologyOutline:
        """Return the outline of a topology."""
        return cls(*topology.tile, topology.grouped, topology.n_connections)

    @classmethod
    def parse(cls, value: Any, where: str, shape: Shape) -> TopologyOutline:
        """Read an outline from an object of its own: rules 5 and 9."""
        return cls.take(Fields(value, where, cls.__dataclass_fields__), where, shape)

    @classmethod
    def take(cls, fields: Fields, where: str, shape: Shape) -> TopologyOutline:
        """Read an outline from an object with other keys too: rules 5 and 9."""
        outline = cls(
            fields.integer("tile_in", 1, MAX_TILE),
            fields.integer("tile_out", 1, MAX_TILE),
            fields.flag("grouped"),
            fields.integer("n_connections", 0, shape[0] * shape[1]),
        )
        require(outline.tile_in % 16 == 0, 5, f"config: {where}.tile_in must be a multiple of 16")
        return outline

    def tensors(self, prefix: str, shape: Shape) -> dict[str, Tensor]:
        """Return the tensors that a topology must have."""
        n_tiles = -(-shape[0] // self.tile_in) * -(-shape[1] // self.tile_out)
        return {
            f"{prefix}.starts": Tensor("I64", (n_tiles + 1,)),
            f"{prefix}.packed": Tensor("U32", (self.n_connections,)),
        }

    def build(self, prefix: str, shape: Shape, arrays: dict[str, Array]) -> Topology:
        """Build the topology, removing its arrays from ``arrays``: rules 10, 11 and 13."""
        starts = arrays.pop(f"{prefix}.starts")
        require(starts[0] == 0, 10, f"{prefix}: the first tile does not start at 0")
        require(
            starts[-1] == self.n_connections,
            10,
            f"{prefix}: the last tile does not end at n_connections",
        )
        require(bool((starts[1:] >= starts[:-1]).all()), 10, f"{prefix}: tile starts decrease")
        tile, packed = (self.tile_in, self.tile_out), arrays.pop(f"{prefix}.packed")
        try:
            return Topology.checked(shape, tile, self.grouped, starts, packed)
        except InvalidInputError as error:
            raise Violation(11, f"{prefix}: {error}") from None


def topology_arrays(topology: Topology, prefix: str) -> dict[str, Array]:
    """Return a topology's arrays by tensor name, without copying them."""
    return {f"{prefix}.starts": topology.starts, f"{prefix}.packed": topology.packed}


@dataclass(frozen=True)
class LayerOutline:
    """A layer without its arrays; ``allowed`` is there only if the layer has a limit."""

    n_in: int
    n_out: int
    topology: TopologyOutline
    n_states: int
    activation: str
    slope: float
    dropout: float
    init: str
    allowed: TopologyOutline | None = None

    @classmethod
    def of(cls, layer: SparseLayer) -> LayerOutline:
        """Return the outline of a layer."""
        if len(layer.state) != len(layer.bias_state):
            raise InvalidInputError(
                "a layer needs as many optimizer arrays of biases as of connections."
            )
        return cls(
            *layer.shape,
            TopologyOutline.of(layer.topology),
            len(layer.state),
            layer.activation,
            float(layer.slope),
            float(layer.dropout),
            layer.init,
            None if layer.allowed is None else TopologyOutline.of(layer.allowed),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the outline as the configuration holds it."""
        found = asdict(self)
        found.update(found.pop("topology"))
        if self.allowed is None:
            del found["allowed"]
        return found

    @classmethod
    def parse(cls, value: Any, where: str, dtype: np.dtype[Any]) -> LayerOutline:
        """Read an outline from the configuration: rules 5 and 9."""
        is_limited = isinstance(value, dict) and "allowed" in value
        fields = Fields(value, where, LAYER_KEYS | {"allowed"} if is_limited else LAYER_KEYS)
        shape = fields.integer("n_in", 1, MAX_WIDTH), fields.integer("n_out", 1, MAX_WIDTH)
        allowed = None
        if is_limited:
            allowed = TopologyOutline.parse(fields["allowed"], f"{where}.allowed", shape)
        outline = cls(
            *shape,
            TopologyOutline.take(fields, where, shape),
            fields.integer("n_states", 0, MAX_STATES),
            fields.choice("activation", ACTIVATIONS),
            fields.number("slope"),
            fields.number("dropout", 0.0, 1.0),
            fields.choice("init", INITS),
            allowed,
        )
        # A rate that is rounded to 1 in the network's number type would drop every neuron.
        rounded = float(dtype.type(outline.dropout))
        require(rounded < 1.0, 5, f"config: {where}.dropout must be below 1")
        return outline

    def tensors(self, prefix: str, dtype: str) -> dict[str, Tensor]:
        """Return the tensors that a layer must have."""
        code, shape = NUMBER_CODES[dtype], (self.n_in, self.n_out)
        values, outputs = (self.topology.n_connections,), (self.n_out,)
        found = {
            **self.topology.tensors(prefix, shape),
            f"{prefix}.weights": Tensor(WEIGHT_CODES[dtype], values),
            f"{prefix}.bias": Tensor(code, outputs),
        }
        for k in range(self.n_states):
            found[f"{prefix}.state.{k}"] = Tensor(code, values)
            found[f"{prefix}.bias_state.{k}"] = Tensor(code, outputs)
        if self.allowed is not None:
            found.update(self.allowed.tensors(f"{prefix}.allowed", shape))
        return found

    def build(self, prefix: str, arrays: dict[str, Array]) -> SparseLayer:
        """Build the layer, removing its arrays from ``arrays``: rules 10 to 14."""
        shape, allowed = (self.n_in, self.n_out), None
        topology = self.topology.build(prefix, shape, arrays)
        if self.allowed is not None:
            allowed = self.allowed.build(f"{prefix}.allowed", shape, arrays)
        taken = {name: arrays.pop(name) for name in layer_arrays(prefix, self.n_states)}
        for name, array in taken.items():
            check_layer_values(name, array)
        values = list(taken.values())
        try:
            return SparseLayer(
                topology,
                values[0],
                values[1],
                self.activation,
                self.slope,
                self.dropout,
                self.init,
                values[2::2],
                values[3::2],
                allowed,
            )
        except InvalidInputError as error:
            raise Violation(14, f"{prefix}: {error}") from None


LAYER_KEYS = frozenset(LayerOutline.__dataclass_fields__) - {"topology", "allowed"} | frozenset(
    TopologyOutline.__dataclass_fields__
)


@dataclass(frozen=True)
class NetworkOutline:
    """A network without its arrays."""

    dtype: str
    clip: float
    has_shift: bool
    has_scale: bool
    layers: tuple[LayerOutline, ...]

    @classmethod
    def of(cls, network: SparseMLP) -> NetworkOutline:
        """Return the outline of a network."""
        scaling = network.scaling
        if not network.layers:
            raise InvalidInputError("a network without layers cannot be stored.")
        return cls(
            network.weight_type,
            float(scaling.clip),
            scaling.shift is not None,
            scaling.scale is not None,
            tuple(LayerOutline.of(layer) for layer in network.layers),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the outline as the configuration holds it."""
        return {**asdict(self), "layers": [layer.to_json() for layer in self.layers]}

    @classmethod
    def parse(cls, value: Any, where: str) -> NetworkOutline:
        """Read an outline from the configuration: rules 5 and 9."""
        fields = Fields(value, where, cls.__dataclass_fields__)
        dtype = fields.choice("dtype", NUMBER_CODES)
        layers = tuple(
            LayerOutline.parse(layer, f"{where}.layers[{index}]", checked_dtype(dtype))
            for index, layer in enumerate(fields.listing("layers", 1, MAX_LAYERS))
        )
        for before, after in pairwise(layers):
            require(
                before.n_out == after.n_in,
                5,
                f"config: {where}: a layer of {before.n_out} outputs before one of {after.n_in}"
                " inputs",
            )
        return cls(
            dtype,
            fields.number("clip", 0.0),
            fields.flag("has_shift"),
            fields.flag("has_scale"),
            layers,
        )

    def tensors(self, prefix: str) -> dict[str, Tensor]:
        """Return the tensors that a network must have."""
        code = NUMBER_CODES[self.dtype]
        found: dict[str, Tensor] = {}
        for name, there in (("shift", self.has_shift), ("scale", self.has_scale)):
            if there:
                found[f"{prefix}.scaling.{name}"] = Tensor(code, (self.layers[0].n_in,))
        for index, layer in enumerate(self.layers):
            found.update(layer.tensors(f"{prefix}.layers.{index}", self.dtype))
        return found

    def build(self, prefix: str, arrays: dict[str, Array]) -> SparseMLP:
        """Build the network, removing its arrays from ``arrays``."""
        scaling: dict[str, Array | None] = {}
        for name, there in (("shift", self.has_shift), ("scale", self.has_scale)):
            scaling[name] = arrays.pop(f"{prefix}.scaling.{name}") if there else None
            if there:
                check_values(f"{prefix}.scaling.{name}", np.asarray(scaling[name]))
        layers = [
            layer.build(f"{prefix}.layers.{index}", arrays)
            for index, layer in enumerate(self.layers)
        ]
        return SparseMLP(layers, Scaling(scaling["shift"], scaling["scale"], self.clip))


def layer_arrays(prefix: str, n_states: int) -> list[str]:
    """Return the names of a layer's values: weights, bias, then both states in turn."""
    names = [f"{prefix}.weights", f"{prefix}.bias"]
    for k in range(n_states):
        names += [f"{prefix}.state.{k}", f"{prefix}.bias_state.{k}"]
    return names


def check_layer_values(name: str, array: Array) -> None:
    """Raise unless all values are finite, and second moments not negative: rule 12."""
    if array.dtype == HALF:
        check_halves(name, array)
    is_second_moment = name.endswith("state.1")
    check_values(name, array, least=0.0 if is_second_moment else None)


def network_arrays(network: SparseMLP, prefix: str) -> dict[str, Array]:
    """Return a network's arrays by tensor name, without copying them."""
    found: dict[str, Array] = {}
    for name, array in (("shift", network.scaling.shift), ("scale", network.scaling.scale)):
        if array is not None:
            found[f"{prefix}.scaling.{name}"] = array
    for index, layer in enumerate(network.layers):
        place = f"{prefix}.layers.{index}"
        found.update(topology_arrays(layer.topology, place))
        values = [layer.stored, layer.bias]
        for state, bias_state in zip(layer.state, layer.bias_state, strict=True):
            values += [state, bias_state]
        found.update(zip(layer_arrays(place, len(layer.state)), values, strict=True))
        if layer.allowed is not None:
            found.update(topology_arrays(layer.allowed, f"{place}.allowed"))
    return found
