"""A sparse layer: a topology, and arrays of values aligned with its slots."""

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
    """A sparse layer: connections with weights, bias, activation and optimizer state.

    Parameters
    ----------
    topology : Topology
        The connections.
    stored : ndarray
        The weights as stored: floating point numbers, or the bits of bfloat16 as ``uint16``.  To
        read them as numbers, use ``weights``.
    bias : ndarray
        One number per output.
    activation : str
        Name of the activation function.
    slope : float
        Slope of the activation, if it has one.
    dropout : float
        Fraction of the outputs dropped during training, in [0, 1).
    init : str
        How initial weights are drawn.
    state, bias_state : list of ndarray
        Optimizer state per connection and per output (momentum, or the two moments of Adam), in
        the order of the kernels.
    allowed : Topology, optional
        The positions where connections are allowed, if they are limited.
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
        """Whether weights are stored in 16 bits."""
        return self.stored.dtype == HALF

    @property
    def weights(self) -> Array:
        """Weights as numbers; for weights stored in bfloat16 a read-only copy."""
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
        """The number of connections."""
        return self.topology.n_connections

    def clear_state(self, n_arrays: int) -> None:
        """Replace the state by this many arrays of zeros, per connection and per output."""
        size, dtype = self.n_connections, self.bias.dtype
        self.state = [np.zeros(size, dtype=dtype) for _ in range(n_arrays)]
        self.bias_state = [np.zeros_like(self.bias) for _ in range(n_arrays)]

    def own_arrays(self) -> None:
        """Replace read-only arrays, such as memory maps, by copies."""
        self.stored, self.bias = _writable(self.stored), _writable(self.bias)
        self.state = [_writable(values) for values in self.state]
        self.bias_state = [_writable(values) for values in self.bias_state]

    def apply(self, rewiring: Rewiring) -> None:
        """Change the topology and move weights and state; the state of new connections is 0.

        Raises
        ------
        InvalidInputError
            If a connection is not allowed; the layer is then not changed.
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
        """Memory in bytes: indices, weights, bias, optimizer state and limit."""
        arrays = [self.stored, self.bias, *self.state, *self.bias_state]
        for topology in (self.topology, self.allowed):
            arrays += [] if topology is None else [topology.packed, topology.starts]
        return sum(array.nbytes for array in arrays)

    def copy(self) -> SparseLayer:
        """Return a copy; the topology is immutable and shared."""
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
    """Return a new layer with random weights, and a random topology unless one is given.

    If ``topology`` is a `Within`, initial connections are drawn from its positions.
    ``dtype="bfloat16"`` stores the weights in 16 bits and computes in float32.

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
