"""Topologies in a file: how tiles are told, and which tensors they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.storage.container import Tensor
from ratoon.storage.fields import Fields
from ratoon.storage.limits import MAX_TILE
from ratoon.storage.rules import Violation, require
from ratoon.topology import Topology

Shape = tuple[int, int]


@dataclass(frozen=True)
class TopologyOutline:
    """All of a topology but its shape and its arrays."""

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
        """Read an outline that stands alone: rules 5 and 9."""
        return cls.take(Fields(value, where, cls.__dataclass_fields__), where, shape)

    @classmethod
    def take(cls, fields: Fields, where: str, shape: Shape) -> TopologyOutline:
        """Read an outline from among other keys: rules 5 and 9."""
        outline = cls(
            fields.integer("tile_in", 1, MAX_TILE),
            fields.integer("tile_out", 1, MAX_TILE),
            fields.flag("grouped"),
            fields.integer("n_connections", 0, shape[0] * shape[1]),
        )
        require(outline.tile_in % 16 == 0, 5, f"config: {where}.tile_in must be a multiple of 16")
        return outline

    def tensors(self, prefix: str, shape: Shape) -> dict[str, Tensor]:
        """Return the tensors a topology must have."""
        n_tiles = -(-shape[0] // self.tile_in) * -(-shape[1] // self.tile_out)
        return {
            f"{prefix}.starts": Tensor("I64", (n_tiles + 1,)),
            f"{prefix}.packed": Tensor("U32", (self.n_connections,)),
        }

    def build(self, prefix: str, shape: Shape, arrays: dict[str, Array]) -> Topology:
        """Take the topology's arrays out of ``arrays`` and make it: rules 10, 11 and 13."""
        starts = arrays.pop(f"{prefix}.starts")
        require(starts[0] == 0, 10, f"{prefix}: the first tile does not start at 0")
        require(starts[-1] == self.n_connections, 10, f"{prefix}: the tiles end elsewhere")
        require(bool((starts[1:] >= starts[:-1]).all()), 10, f"{prefix}: tile starts decrease")
        tile, packed = (self.tile_in, self.tile_out), arrays.pop(f"{prefix}.packed")
        try:
            return Topology.checked(shape, tile, self.grouped, starts, packed)
        except InvalidInputError as error:
            raise Violation(11, f"{prefix}: {error}") from None


def topology_arrays(topology: Topology, prefix: str) -> dict[str, Array]:
    """Return a topology's arrays by tensor name, as they lie in memory."""
    return {f"{prefix}.starts": topology.starts, f"{prefix}.packed": topology.packed}
