"""Tiles of the inputs x outputs plane and their order: reference for `topology.hpp`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ratoon.topology import IntArray, Topology

GROUP = 16


@dataclass(frozen=True)
class Tile:
    """One tile: its origin, its size and the order of the positions in it.

    Positions are ordered by (input, output), or, if grouped, by (input // 16, output, input % 16);
    the last group is narrower if 16 does not divide the inputs.

    Examples
    --------
    >>> tile = Tile(first_input=0, first_output=0, inputs=18, outputs=2, grouped=True)
    >>> inputs, outputs = tile.at(np.array([0, 1, 16, 32, 33, 34]))
    >>> inputs.tolist(), outputs.tolist()
    ([0, 1, 0, 16, 17, 16], [0, 0, 1, 0, 0, 1])
    >>> tile.key(inputs, outputs).tolist()
    [0, 1, 16, 32, 33, 34]
    """

    first_input: int
    first_output: int
    inputs: int
    outputs: int
    grouped: bool

    @property
    def area(self) -> int:
        """Number of positions."""
        return self.inputs * self.outputs

    def key(self, inputs: IntArray, outputs: IntArray) -> IntArray:
        """Return the keys of local positions: their indices in the order of the tile."""
        if not self.grouped:
            return inputs * self.outputs + outputs
        first = inputs - inputs % GROUP
        width: IntArray = np.minimum(GROUP, self.inputs - first)
        return first * self.outputs + outputs * width + (inputs - first)

    def at(self, keys: IntArray) -> tuple[IntArray, IntArray]:
        """Return the local positions with these keys."""
        if not self.grouped:
            return keys // self.outputs, keys % self.outputs
        first = keys // (GROUP * self.outputs) * GROUP
        width = np.minimum(GROUP, self.inputs - first)
        rest = keys - first * self.outputs
        return first + rest % width, rest // width

    def pack(self, keys: IntArray) -> NDArray[np.uint32]:
        """Return the 32-bit words of the positions with these keys."""
        inputs, outputs = self.at(keys)
        return (inputs << 16 | outputs).astype(np.uint32)

    def unpack(self, packed: NDArray[np.uint32]) -> IntArray:
        """Return the keys of positions given as 32-bit words."""
        words = packed.astype(np.int64)
        return self.key(words >> 16, words & 0xFFFF)


def tiles_of(shape: tuple[int, int], tile: tuple[int, int], grouped: bool) -> Iterator[Tile]:
    """Yield the tiles of a layer in the order of their slots: strips of outputs, inputs inside."""
    outputs, inputs = range(0, shape[1], tile[1]), range(0, shape[0], tile[0])
    for first_output, first_input in product(outputs, inputs):
        yield Tile(
            first_input,
            first_output,
            min(tile[0], shape[0] - first_input),
            min(tile[1], shape[1] - first_output),
            grouped,
        )


def tiles_and_slots(topology: Topology) -> Iterator[tuple[Tile, slice]]:
    """Yield every tile of a topology with its slots."""
    starts = topology.starts.tolist()
    tiles = tiles_of(topology.shape, topology.tile, topology.grouped)
    for tile, first, last in zip(tiles, starts[:-1], starts[1:], strict=True):
        yield tile, slice(first, last)
