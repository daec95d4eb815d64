"""Topology: which connections a layer has, and how one topology becomes the next."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from ratoon import _native
from ratoon.errors import InvalidInputError, InvalidParameterError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float32] | NDArray[np.float64]

GROWN = -1
"""The origin of a connection that did not exist before."""


class Topology:
    """The connections of one layer: an immutable set without values.

    The *slot* of a connection is its index in the order of the layer.  Weights, momentum and all
    other values per connection are arrays aligned with the slots.  The order is *tiled flat COO*:
    the plane of inputs by outputs is cut into tiles, a connection is one 32-bit word in its tile,
    and tiles are sorted (see `docs/how-a-step-works.md`).

    Instances are created by the class methods, which check all arguments; native code accepts
    nothing else.

    Examples
    --------
    >>> topology = Topology.from_pairs((4, 3), inputs=[0, 2, 3], outputs=[1, 1, 0])
    >>> topology
    Topology(4 -> 3, 3 connections, density 0.25)
    >>> topology.rows.tolist(), topology.columns.tolist()
    ([3, 0, 2], [0, 1, 1])
    """

    __slots__ = ("_native",)

    def __init__(self, native: _native.Topology) -> None:
        self._native = native

    # ------------------------------------------------------------------------ constructors

    @classmethod
    def random(
        cls, shape: tuple[int, int], n_connections: int, *, seed: int, n_threads: int = 1
    ) -> Topology:
        """Draw exactly ``n_connections``; every set of them is equally likely.

        Examples
        --------
        >>> Topology.random((200_000, 200_000), 1000, seed=0).n_connections
        1000
        """
        grid = suited_grid(shape, n_connections)
        try:
            return cls(_native.Topology.random(grid, n_connections, seed, n_threads))
        except (ValueError, TypeError) as error:
            raise InvalidInputError(f"a {shape[0]} -> {shape[1]} layer: {error}") from None

    @classmethod
    def from_pairs(cls, shape: tuple[int, int], inputs: ArrayLike, outputs: ArrayLike) -> Topology:
        """Build from (input, output) pairs in any order; duplicates raise an error."""
        return cls.from_pairs_with_order(shape, inputs, outputs)[0]

    @classmethod
    def from_pairs_with_order(
        cls, shape: tuple[int, int], inputs: ArrayLike, outputs: ArrayLike
    ) -> tuple[Topology, IntArray]:
        """Build from pairs; ``order[slot]`` is the index of the pair of a slot.

        Examples
        --------
        >>> topology, order = Topology.from_pairs_with_order((2, 2), [1, 0], [0, 1])
        >>> values = np.array([5.0, 7.0])  # of the pairs (1, 0) and (0, 1), as given
        >>> values[order]                  # the same values by slot
        array([5., 7.])
        """
        rows, columns = as_indices(inputs), as_indices(outputs)
        grid = suited_grid(shape, rows.size)
        try:
            native, order = _native.Topology.from_pairs(grid, rows, columns)
        except ValueError as error:
            raise InvalidInputError(f"a {shape[0]} -> {shape[1]} layer: {error}") from None
        return cls(native), order

    @classmethod
    def from_positions(cls, shape: tuple[int, int], positions: ArrayLike) -> Topology:
        """Build from flat row-major positions: ``input * n_out + output``."""
        flat = as_indices(positions)
        n_out = suited_grid(shape, flat.size).n_out
        return cls.from_pairs(shape, flat // n_out, flat % n_out)

    @classmethod
    def from_scipy(cls, matrix: Any) -> tuple[Topology, NDArray[Any]]:
        """Build from the stored entries of a SciPy matrix (inputs x outputs); return values too.

        Stored zeros are connections.
        """
        coo = scipy.sparse.coo_array(matrix)
        topology, order = cls.from_pairs_with_order(coo.shape, coo.coords[0], coo.coords[1])
        return topology, coo.data[order]

    @classmethod
    def full(cls, shape: tuple[int, int]) -> Topology:
        """Build the topology with all connections, stored like any other."""
        return cls.random(shape, shape[0] * shape[1], seed=0)

    @classmethod
    def checked(
        cls,
        shape: tuple[int, int],
        tile: tuple[int, int],
        grouped: bool,
        starts: IntArray,
        packed: NDArray[np.uint32],
    ) -> Topology:
        """Build from stored arrays, after checking every entry.

        Raises
        ------
        InvalidInputError
            If tiles, starts or any index are invalid.
        """
        try:
            (n_in, n_out), (tile_in, tile_out) = shape, tile
            grid = _native.Grid.of(n_in, n_out, tile_in, tile_out, grouped)
            return cls(_native.Topology.checked(grid, starts, packed))
        except (ValueError, TypeError) as error:
            raise InvalidInputError(f"not a valid topology: {error}") from None

    # -------------------------------------------------------------------------- properties

    @property
    def native(self) -> _native.Topology:
        """The native object that kernels take."""
        return self._native

    @property
    def shape(self) -> tuple[int, int]:
        """Number of inputs, number of outputs."""
        grid = self._native.grid
        return grid.n_in, grid.n_out

    @property
    def n_connections(self) -> int:
        """The number of connections."""
        return self._native.n_connections

    @property
    def n_positions(self) -> int:
        """The number of possible connections: inputs times outputs."""
        return self.shape[0] * self.shape[1]

    @property
    def density(self) -> float:
        """Connections divided by positions."""
        return self.n_connections / self.n_positions

    @property
    def is_full(self) -> bool:
        """Whether every position is a connection, so that nothing can be grown."""
        return self.n_connections == self.n_positions

    @property
    def tile(self) -> tuple[int, int]:
        """Inputs and outputs of a tile."""
        grid = self._native.grid
        return grid.tile_in, grid.tile_out

    @property
    def grouped(self) -> bool:
        """Whether a tile is ordered by groups of 16 inputs."""
        return self._native.grid.grouped

    @property
    def starts(self) -> IntArray:
        """First slot of every tile, followed by the number of connections; read-only."""
        return self._native.starts

    @property
    def packed(self) -> NDArray[np.uint32]:
        """Every connection relative to its tile: local input << 16 | local output; read-only."""
        return self._native.packed

    def pairs(self) -> tuple[IntArray, IntArray]:
        """Return input and output of every slot."""
        return self._native.pairs()

    @property
    def rows(self) -> IntArray:
        """Input of every slot; computed on every access."""
        return self.pairs()[0]

    @property
    def columns(self) -> IntArray:
        """Output of every slot; computed on every access."""
        return self.pairs()[1]

    @property
    def positions(self) -> IntArray:
        """Flat row-major position of every slot, not sorted; computed on every access."""
        inputs, outputs = self.pairs()
        return inputs * self.shape[1] + outputs

    def degrees(self) -> tuple[IntArray, IntArray]:
        """Return the number of connections of every input and of every output.

        Examples
        --------
        >>> inputs, outputs = Topology.from_pairs((3, 2), [0, 0, 2], [0, 1, 1]).degrees()
        >>> inputs.tolist(), outputs.tolist()
        ([2, 0, 1], [1, 2])
        """
        return self._native.degrees()

    def to_csr(self, values: NDArray[Any] | None = None) -> scipy.sparse.csr_array:
        """Return a SciPy matrix (inputs x outputs) of ``values``, or of ones."""
        data = np.ones(self.n_connections, dtype=np.float32) if values is None else values
        return scipy.sparse.coo_array((data, self.pairs()), shape=self.shape).tocsr()

    def content_hash(self) -> str:
        """Return the SHA-256 of shape, tiling and connections."""
        digest = hashlib.sha256(repr((self.shape, self.tile, self.grouped)).encode())
        digest.update(self.starts.tobytes())
        digest.update(self.packed.tobytes())
        return digest.hexdigest()

    def regrow(self, kept: IntArray, count: int, *, seed: int, n_threads: int = 1) -> Rewiring:
        """Keep the slots ``kept`` and grow ``count`` connections uniformly at empty positions."""
        slots = as_indices(kept)
        try:
            native, origin = self._native.regrow_uniformly(slots, count, seed, n_threads)
        except (ValueError, TypeError) as error:
            raise InvalidInputError(
                f"{self!r} cannot grow {count!r} connections: {error}"
            ) from None
        return Rewiring(Topology(native), origin)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topology):
            return NotImplemented
        return (
            self._native.grid == other._native.grid
            and np.array_equal(self.starts, other.starts)
            and np.array_equal(self.packed, other.packed)
        )

    def __hash__(self) -> int:
        return hash(self.content_hash())

    def __repr__(self) -> str:
        n_in, n_out = self.shape
        return (
            f"Topology({n_in} -> {n_out}, {self.n_connections} connections,"
            f" density {self.density:.3g})"
        )

    def __reduce__(self) -> tuple[Callable[..., Topology], tuple[Any, ...]]:
        # Pickles pass the same checks as files.
        arrays = (np.array(self.starts), np.array(self.packed))
        return Topology.checked, (self.shape, self.tile, self.grouped, *arrays)


@dataclass(frozen=True, eq=False)
class Rewiring:
    """The change from one topology to the next, slot by slot.

    ``origin[k]`` is the old slot of connection ``k``, or `GROWN`.  `carry` moves any array aligned
    with the old slots: weights, momentum, the moments of Adam.

    ``grown_weights`` holds the first weight of each new connection in the order of the slots; if it
    is None, new connections start at 0.
    """

    topology: Topology
    origin: IntArray
    grown_weights: FloatArray | None = None

    @classmethod
    def unchanged(cls, topology: Topology) -> Rewiring:
        """Return the rewiring that changes nothing."""
        return cls(topology, np.arange(topology.n_connections))

    @classmethod
    def between(cls, old: Topology, kept: IntArray, grown: IntArray) -> Rewiring:
        """Keep the slots ``kept`` of ``old`` and add connections at the positions ``grown``."""
        inputs, outputs = old.pairs()
        n_out = old.shape[1]
        topology, order = Topology.from_pairs_with_order(
            old.shape,
            np.concatenate((inputs[kept], grown // n_out)),
            np.concatenate((outputs[kept], grown % n_out)),
        )
        origin = np.concatenate((kept, np.full(grown.size, GROWN)))
        return cls(topology, origin[order])

    @property
    def is_grown(self) -> NDArray[np.bool_]:
        """Which slots are new."""
        return np.equal(self.origin, GROWN)

    @property
    def n_grown(self) -> int:
        """The number of new connections."""
        return int(np.count_nonzero(self.is_grown))

    def carry(self, values: NDArray[Any], *, grown: ArrayLike = 0.0) -> NDArray[Any]:
        """Return an array of per-connection values by new slots; new connections get ``grown``."""
        is_grown = self.is_grown
        carried = np.empty(self.origin.shape, dtype=values.dtype)
        carried[~is_grown] = values[self.origin[~is_grown]]
        carried[is_grown] = grown
        return carried

    def carry_weights(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Return the weights by new slots; new connections get ``grown_weights``, or 0."""
        return self.carry(weights, grown=0.0 if self.grown_weights is None else self.grown_weights)


@dataclass(frozen=True, eq=False)
class Within:
    """A limit: a layer may have connections only where a matrix has entries.

    Pass it to an estimator as ``topology=``.  (A matrix alone is the initial topology, which
    evolution may leave.)  All strategies prune as usual and grow at allowed positions only.  Time
    and memory of a rewiring are proportional to the number of allowed positions.

    Parameters
    ----------
    matrix : SciPy sparse matrix or Topology, inputs x outputs
        Stored entries are allowed positions; their values are ignored.
    density : float, default=0.5
        Fraction of the allowed positions that are initial connections, drawn at random.
        Connections can move to the rest; at 1 there is nothing to evolve.
    start : SciPy sparse matrix or Topology, optional
        The initial connections; all of them must be allowed.
    names : sequence of str, default=()
        Names of the first outputs, for example of the pathways that the neurons are.

    Examples
    --------
    >>> import scipy.sparse
    >>> Within(scipy.sparse.eye_array(4, 3), density=0.7)
    Within(4 -> 3, 3 positions allowed, density 0.7)
    """

    matrix: Any
    density: float = 0.5
    start: Any = None
    names: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in ("matrix", "start"):
            value = getattr(self, name)
            is_known = hasattr(value, "nnz") or hasattr(value, "n_connections")
            if not (is_known or (name == "start" and value is None)):
                raise InvalidParameterError(
                    f"Within: `{name}` must be a SciPy sparse matrix (inputs x outputs) or a"
                    f" Topology, got {type(value).__name__}."
                )
        if not 0.0 < self.density <= 1.0:
            raise InvalidParameterError(
                f"Within: `density` must be a number in (0, 1], got {self.density!r}.\n"
                f"  It is the share of the allowed positions that are initial connections."
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of inputs, number of outputs."""
        n_in, n_out = self.matrix.shape
        return int(n_in), int(n_out)

    @property
    def n_allowed(self) -> int:
        """The number of allowed positions."""
        return _size(self.matrix)

    @property
    def n_connections(self) -> int:
        """The number of initial connections."""
        if self.start is not None:
            return _size(self.start)
        return max(1, round(self.density * self.n_allowed))

    def __repr__(self) -> str:
        n_in, n_out = self.shape
        initial = f"{self.n_connections} to start with"
        share = initial if self.start is not None else f"density {self.density:g}"
        return f"Within({n_in} -> {n_out}, {self.n_allowed} positions allowed, {share})"


def _size(matrix: Any) -> int:
    return int(matrix.nnz if hasattr(matrix, "nnz") else matrix.n_connections)


def suited_grid(shape: tuple[int, int], n_connections: int) -> _native.Grid:
    """Return the tiles of a layer, a function of its shape and number of connections."""
    try:
        n_in, n_out = shape
        return _native.Grid.suited_to(n_in, n_out, n_connections)
    except (ValueError, TypeError) as error:
        raise InvalidInputError(f"a layer of shape {shape!r}: {error}") from None


def as_indices(values: ArrayLike) -> IntArray:
    """Return an array of int64 as native code takes it; other than integer types raise an error."""
    array = np.asarray(values)
    if array.size > 0 and array.dtype.kind not in "iu":
        raise InvalidInputError(f"indices of connections must be integers, got {array.dtype}.")
    return np.ascontiguousarray(array, dtype=np.int64).ravel()
