"""SplitNetwork: the parts of a network that one rank holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ratoon.arrays import Array
from ratoon.distributed.communicator import Communicator
from ratoon.distributed.split.cost import split_cost
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.initialise import connections_wanted
from ratoon.initialise.weights import weight_scale
from ratoon.kernels import Scaling
from ratoon.kernels.types import checked_dtype
from ratoon.layers import SparseLayer, make_layer
from ratoon.memory import require_memory
from ratoon.network import ALTERNATING, SparseMLP
from ratoon.rng import derive_seed
from ratoon.topology import Topology


@dataclass(eq=False)
class Column:
    """What one part holds of one layer: the connections into its neurons.

    Parameters
    ----------
    blocks : list of SparseLayer or None
        One block per part of the inputs; None where a part has no neurons.  The biases of the
        blocks are 0 and are not used.
    bias : ndarray
        Biases of the neurons of the part.
    bias_state : list of ndarray
        Optimizer state of the biases.
    """

    blocks: list[SparseLayer | None]
    bias: Array
    bias_state: list[Array] = field(default_factory=list)

    def clear_state(self, n_arrays: int) -> None:
        """Replace the optimizer state by this many arrays of zeros."""
        for block in self.blocks:
            if block is not None:
                block.clear_state(n_arrays)
        self.bias_state = [np.zeros_like(self.bias) for _ in range(n_arrays)]


@dataclass(frozen=True)
class LayerKind:
    """What all parts of a layer have in common."""

    activation: str = "identity"
    slope: float = 0.0
    dropout: float = 0.0


@dataclass(eq=False)
class SplitNetwork:
    """The parts of a network that one rank holds.

    The inputs of the network are not cut: every rank reads the samples.

    Parameters
    ----------
    widths : tuple of int
        Neurons per layer, inputs and outputs included.
    n_parts : int
        Parts of every layer, at least the number of ranks.
    ranks : Communicator
        The ranks that hold the parts: rank r those from ``r * n_parts // size`` on.
    kinds : list of LayerKind
        Activation and dropout of every layer.
    columns : dict
        For every part of this rank, one `Column` per layer.
    scaling : Scaling
        How samples are read.

    Examples
    --------
    >>> from ratoon.distributed import SingleRank
    >>> network = SplitNetwork.start((100, 60, 3), 2, SingleRank(), epsilon=5, seed=0)
    >>> network.n_connections, [column.bias.size for column in network.columns[1]]
    (980, [30, 2])
    """

    widths: tuple[int, ...]
    n_parts: int
    ranks: Communicator
    kinds: list[LayerKind]
    columns: dict[int, list[Column]]
    scaling: Scaling = field(default_factory=Scaling)

    @classmethod
    def start(
        cls,
        widths: Sequence[int],
        n_parts: int,
        ranks: Communicator,
        *,
        seed: int,
        epsilon: float | None = None,
        density: float | None = None,
        init: str = "he",
        output_init: str | None = None,
        activation: str = "relu",
        slope: float = 0.0,
        dropout: float = 0.0,
        scaling: Scaling | None = None,
        dtype: DTypeLike = np.float32,
        n_threads: int = 1,
    ) -> SplitNetwork:
        """Draw a random network; every rank draws only its own parts.

        The parameters are those of `SparseMLP.start`.  Every block of a layer has the same density
        up to rounding.
        """
        widths = tuple(int(width) for width in widths)
        check_parts(n_parts, ranks)
        kind = checked_dtype(dtype)
        cost = split_cost(
            widths, ranks.size, epsilon=epsilon, density=density, number_bytes=kind.itemsize
        )
        require_memory(
            cost.connection_bytes,
            f"a part of this network ({cost.n_connections:,} connections over"
            f" {ranks.size} rank{'s' if ranks.size > 1 else ''})",
            "Use more ranks, narrower layers or a smaller `epsilon`.",
        )
        kinds, columns = [], {part: list[Column]() for part in own_parts(n_parts, ranks)}
        for index, shape in enumerate(pairwise(widths)):
            is_output = index == len(widths) - 2
            sign = -1.0 if activation in ALTERNATING and index % 2 == 0 else 1.0
            kinds.append(
                LayerKind()
                if is_output
                else LayerKind(activation, float(sign * slope), float(dropout))
            )
            wanted = connections_wanted(shape, epsilon=epsilon, density=density)
            layer_init = output_init if is_output and output_init else init
            for part, held in columns.items():
                held.append(
                    _draw_column(
                        shape,
                        n_sources(index, n_parts),
                        part,
                        n_parts,
                        wanted / (shape[0] * shape[1]),
                        seed=derive_seed(seed, "layer", index),
                        init=layer_init,
                        dtype=kind,
                        n_threads=n_threads,
                    )
                )
        return cls(widths, n_parts, ranks, kinds, columns, (scaling or Scaling()).of_type(kind))

    @classmethod
    def of(cls, network: SparseMLP, n_parts: int, ranks: Communicator) -> SplitNetwork:
        """Cut a network that every rank has; its arrays are copied."""
        check_parts(n_parts, ranks)
        if network.weight_type == "bfloat16":
            raise InvalidInputError(
                "weights kept in bfloat16 cannot be split over ranks.  Use float32."
            )
        columns = {part: list[Column]() for part in own_parts(n_parts, ranks)}
        for index, layer in enumerate(network.layers):
            if layer.allowed is not None:
                raise InvalidInputError(
                    f"layer {index + 1} has limited positions (`Within`), which a network over"
                    f" several ranks does not support."
                )
            inputs, outputs = layer.topology.pairs()
            for part, held in columns.items():
                held.append(_cut_column(layer, inputs, outputs, index, part, n_parts))
        kinds = [LayerKind(one.activation, one.slope, one.dropout) for one in network.layers]
        return cls(network.widths, n_parts, ranks, kinds, columns, network.scaling)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Data type of the computation."""
        return next(iter(self.columns.values()))[0].bias.dtype

    @property
    def own(self) -> range:
        """The parts of this rank."""
        return own_parts(self.n_parts, self.ranks)

    @property
    def n_connections(self) -> int:
        """The number of connections on this rank."""
        return sum(block.n_connections for _, _, _, block in self.blocks())

    def blocks(self) -> list[tuple[int, int, int, SparseLayer]]:
        """Return the blocks of this rank with their layer, part of the inputs, and part."""
        return [
            (index, source, part, block)
            for part, held in self.columns.items()
            for index, column in enumerate(held)
            for source, block in enumerate(column.blocks)
            if block is not None
        ]

    def part_of(self, layer: int, part: int) -> slice:
        """Return the neurons of a part of a layer; layer 0 is that of the inputs."""
        width = self.widths[layer]
        return part_of(width, part, n_sources(layer, self.n_parts))

    def clear_state(self, n_arrays: int) -> None:
        """Replace the optimizer state by this many arrays of zeros."""
        for held in self.columns.values():
            for column in held:
                column.clear_state(n_arrays)

    def nbytes(self) -> int:
        """Memory of this rank in bytes: connections, biases and optimizer state."""
        biases = [
            array
            for held in self.columns.values()
            for column in held
            for array in (column.bias, *column.bias_state)
        ]
        return sum(block.nbytes() for *_, block in self.blocks()) + sum(b.nbytes for b in biases)

    def outputs(self, x: Any, *, n_threads: int = 1) -> Array:
        """Return the raw outputs (samples, outputs) on every rank; all ranks must call it."""
        from ratoon.distributed.split.steps import split_outputs

        return split_outputs(self, x, n_threads=n_threads)

    def join(self) -> SparseMLP:
        """Return the whole network on every rank; it has to fit the memory of one.

        The optimizer state is left out.
        """
        mine = {part: [_triples(column) for column in held] for part, held in self.columns.items()}
        everyone: dict[int, Any] = {}
        for one in self.ranks.gather(mine):
            everyone.update(one)
        layers = []
        for index, shape in enumerate(pairwise(self.widths)):
            pieces, biases = [], np.zeros(shape[1], dtype=self.dtype)
            for part, held in everyone.items():
                outputs = self.part_of(index + 1, part)
                parts, biases[outputs] = held[index]
                for source, (rows, columns, values) in parts.items():
                    inputs = self.part_of(index, source)
                    pieces.append((rows + inputs.start, columns + outputs.start, values))
            rows, columns, values = (
                np.concatenate([piece[k] for piece in pieces]) for k in range(3)
            )
            topology, order = Topology.from_pairs_with_order(shape, rows, columns)
            kind = self.kinds[index]
            layers.append(
                SparseLayer(
                    topology, values[order], biases, kind.activation, kind.slope, kind.dropout
                )
            )
        return SparseMLP(layers, self.scaling)


def own_parts(n_parts: int, ranks: Communicator) -> range:
    """Return the parts of a rank."""
    first, last = (rank * n_parts // ranks.size for rank in (ranks.rank, ranks.rank + 1))
    return range(first, last)


def owner_of(part: int, n_parts: int, size: int) -> int:
    """Return the rank that owns a part.

    Examples
    --------
    >>> [owner_of(part, 5, 2) for part in range(5)]
    [0, 0, 1, 1, 1]
    """
    return next(rank for rank in range(size) if part < (rank + 1) * n_parts // size)


def check_parts(n_parts: int, ranks: Communicator) -> None:
    """Raise unless every rank has a part."""
    if n_parts < ranks.size:
        raise InvalidParameterError(
            f"a network over {ranks.size} ranks needs at least {ranks.size} parts, got {n_parts!r}."
        )


def n_sources(layer: int, n_parts: int) -> int:
    """Return the number of parts of the inputs of a layer; those of the network are not cut."""
    return 1 if layer == 0 else n_parts


def part_of(width: int, part: int, n_parts: int) -> slice:
    """Return the neurons of a part.

    Examples
    --------
    >>> [part_of(10, part, 4) for part in range(4)]
    [slice(0, 2, None), slice(2, 5, None), slice(5, 7, None), slice(7, 10, None)]
    """
    return slice(part * width // n_parts, (part + 1) * width // n_parts)


def _size(part: slice) -> int:
    return int(part.stop - part.start)


def _draw_column(
    shape: tuple[int, int],
    sources: int,
    part: int,
    n_parts: int,
    density: float,
    *,
    seed: int,
    init: str,
    dtype: np.dtype[Any],
    n_threads: int,
) -> Column:
    width = _size(part_of(shape[1], part, n_parts))
    blocks: list[SparseLayer | None] = []
    for source in range(sources):
        inputs = _size(part_of(shape[0], source, sources))
        n_positions = inputs * width
        if n_positions == 0:
            blocks.append(None)
            continue
        block = make_layer(
            (inputs, width),
            seed=derive_seed(seed, "block", source, part),
            # A small block needs at least one connection.
            density=max(density, 0.6 / n_positions),
            init=init,
            dtype=dtype,
            n_threads=n_threads,
        )
        if init == "he":  # the fan-in of a neuron is that of all blocks together
            fan_in = max(density * shape[0], 1.0)
            block.stored *= np.sqrt(2.0 / fan_in) / weight_scale(block.topology, "he")
        blocks.append(block)
    return Column(blocks, np.zeros(width, dtype=dtype))


def _cut_column(
    layer: SparseLayer, inputs: Array, outputs: Array, index: int, part: int, n_parts: int
) -> Column:
    sources = n_sources(index, n_parts)
    mine = part_of(layer.shape[1], part, n_parts)
    into = (outputs >= mine.start) & (outputs < mine.stop)
    blocks: list[SparseLayer | None] = []
    for source in range(sources):
        origin = part_of(layer.shape[0], source, sources)
        slots = np.flatnonzero(into & (inputs >= origin.start) & (inputs < origin.stop))
        shape = (_size(origin), _size(mine))
        if shape[0] * shape[1] == 0:
            blocks.append(None)
            continue
        topology, order = Topology.from_pairs_with_order(
            shape, inputs[slots] - origin.start, outputs[slots] - mine.start
        )
        blocks.append(
            SparseLayer(
                topology,
                layer.weights[slots][order],
                np.zeros(shape[1], dtype=layer.bias.dtype),
                init=layer.init,
                state=[values[slots][order] for values in layer.state],
                bias_state=[np.zeros(shape[1], dtype=layer.bias.dtype) for _ in layer.state],
            )
        )
    return Column(
        blocks, layer.bias[mine].copy(), [values[mine].copy() for values in layer.bias_state]
    )


def _triples(column: Column) -> tuple[dict[int, tuple[Array, Array, Array]], Array]:
    parts = {
        source: (*block.topology.pairs(), block.weights)
        for source, block in enumerate(column.blocks)
        if block is not None
    }
    return parts, column.bias
