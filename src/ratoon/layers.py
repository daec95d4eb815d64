"""A sparse layer: a topology, and arrays of values aligned with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ratoon.arrays import Array
from ratoon.errors import InvalidParameterError, check_fraction
from ratoon.initialise import check_within, first_weights, start_topology, start_within
from ratoon.kernels import ACTIVATIONS
from ratoon.kernels.bfloat16 import HALF, narrow, widen
from ratoon.kernels.types import checked_dtype, is_bfloat16
from ratoon.topology import Rewiring, Topology, Within


@dataclass(eq=False)
class SparseLayer:
    """Connections with weights, a bias per output, an activation; and the optimizer's state.

    ``stored`` are the weights as they lie in memory: numbers, or bits of bfloat16 as ``uint16``.
    Who only wants to know them asks for ``weights``.  ``state`` and ``bias_state`` hold what the
    optimizer keeps per connection and per output (momentum; or Adam's two moments), in the order
    the kernels take them.

    ``allowed`` is where connections may be, if that is limited.
    """

    topology: Topology
    stored: Array
    bias: Array
    activation: str = "identity"
    slope: float = 0.0
    dropout: float = 0.0
    init: str = "he"
    state: list[Array] = field(default_factory=list)
    bias_state: list[Array] = field(default_factory=list)
    allowed: Topology | None = None

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise InvalidParameterError(
                f"`activation` must be one of {tuple(ACTIVATIONS)}, got {self.activation!r}."
            )
        check_fraction("dropout", self.dropout, owner="SparseLayer")
        if self.allowed is not None:
            check_within(self.topology, self.allowed, "the topology")

    @property
    def shape(self) -> tuple[int, int]:
        """Number of inputs, number of outputs."""
        return self.topology.shape

    @property
    def is_bfloat16(self) -> bool:
        """Whether weights are kept in 16 bits."""
        return self.stored.dtype == HALF

    @property
    def weights(self) -> Array:
        """Weights as numbers; where they are kept in bfloat16, a copy that can only be read."""
        if not self.is_bfloat16:
            return self.stored
        numbers = widen(self.stored)
        numbers.flags.writeable = False
        return numbers

    @weights.setter
    def weights(self, numbers: Array) -> None:
        self.stored = narrow(numbers) if self.is_bfloat16 else numbers

    @property
    def n_connections(self) -> int:
        """How many connections the layer has."""
        return self.topology.n_connections

    def clear_state(self, n_arrays: int) -> None:
        """Give the optimizer this many arrays of zeros, per connection and per output."""
        size, dtype = self.n_connections, self.bias.dtype
        self.state = [np.zeros(size, dtype=dtype) for _ in range(n_arrays)]
        self.bias_state = [np.zeros_like(self.bias) for _ in range(n_arrays)]

    def own_arrays(self) -> None:
        """Replace arrays that may only be read, such as memory maps, by copies."""
        self.stored, self.bias = _writable(self.stored), _writable(self.bias)
        self.state = [_writable(values) for values in self.state]
        self.bias_state = [_writable(values) for values in self.bias_state]

    def apply(self, rewiring: Rewiring) -> None:
        """Take over a new topology and bring every value along; new connections have no state.

        Raises
        ------
        InvalidInputError
            If a connection is not allowed: then the layer stays as it was.
        """
        if self.allowed is not None:
            check_within(rewiring.topology, self.allowed, "a rewiring")
        self.weights = rewiring.carry_weights(self.weights)
        self.state = [rewiring.carry(values) for values in self.state]
        self.topology = rewiring.topology

    def to_csr(self) -> Any:
        """Return the weights as a SciPy matrix, inputs x outputs."""
        return self.topology.to_csr(self.weights)

    def nbytes(self) -> int:
        """Bytes of indices, weights, bias, optimizer state, and of a limit."""
        arrays = [self.stored, self.bias, *self.state, *self.bias_state]
        for topology in (self.topology, self.allowed):
            arrays += [] if topology is None else [topology.packed, topology.starts]
        return sum(array.nbytes for array in arrays)

    def copy(self) -> SparseLayer:
        """Return a layer with arrays of its own; the topology is shared, it never changes."""
        return SparseLayer(
            self.topology,
            self.stored.copy(),
            self.bias.copy(),
            self.activation,
            self.slope,
            self.dropout,
            self.init,
            [values.copy() for values in self.state],
            [values.copy() for values in self.bias_state],
            self.allowed,
        )


def _writable(values: Array) -> Array:
    return values if values.flags.writeable else values.copy()


def make_layer(
    shape: tuple[int, int],
    *,
    seed: int,
    epsilon: float | None = None,
    density: float | None = None,
    start: str = "exact",
    init: str = "he",
    topology: Topology | Within | None = None,
    activation: str = "identity",
    slope: float = 0.0,
    dropout: float = 0.0,
    dtype: DTypeLike = np.float32,
    n_threads: int = 1,
) -> SparseLayer:
    """Start a layer: draw its topology unless one is given, and its weights.

    A topology given as `Within` is a limit, and what the layer starts with is drawn from it.
    ``dtype="bfloat16"`` keeps the weights in 16 bits and computes in float32.

    Examples
    --------
    >>> make_layer((100, 50), density=0.1, seed=0).n_connections
    500
    """
    allowed: Topology | None = None
    if isinstance(topology, Within):
        topology, allowed = start_within(topology, seed=seed)
    elif topology is None:
        topology = start_topology(
            shape, seed=seed, epsilon=epsilon, density=density, start=start, n_threads=n_threads
        )
    kind = checked_dtype(dtype)
    weights = first_weights(topology, seed=seed, init=init, dtype=kind, n_threads=n_threads)
    bias = np.zeros(topology.shape[1], dtype=kind)
    stored = narrow(weights) if is_bfloat16(dtype) else weights
    return SparseLayer(topology, stored, bias, activation, slope, dropout, init, allowed=allowed)
