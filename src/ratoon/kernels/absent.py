"""Connections that are not there: the largest of their gradients, and growth at given places."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon import _native
from ratoon.topology import IntArray, Rewiring, Topology, suited_grid


def largest_absent(
    topology: Topology,
    kept: IntArray,
    activations: NDArray[Any],
    errors: NDArray[Any],
    count: int,
    *,
    n_threads: int = 1,
) -> IntArray:
    """Return the ``count`` empty positions with the largest gradient magnitude, ascending.

    The gradient at position (i, j) is ``activations[i] @ errors[j]``; it is computed block by
    block and never written down.  Exact: of equal magnitudes the lower position is taken.
    Positions without a gradient are not returned, so there may be fewer than asked for.

    Parameters
    ----------
    topology : Topology
        The layer.
    kept : ndarray of int64
        Slots that count as occupied, ascending; every other position counts as empty.
    activations, errors : ndarray
        One row per input and one per output, with as many columns.
    count : int
        How many positions to return at most.
    n_threads : int
        Does not change the result.

    Examples
    --------
    >>> topology = Topology.from_pairs((2, 2), [0], [0])
    >>> x, d = np.array([[10.0], [1.0]]), np.array([[3.0], [-2.0]])
    >>> largest_absent(topology, np.array([0]), x, d, 2).tolist()  # position 0 is taken
    [1, 2]
    """
    return _native.largest_absent(
        topology.native,
        np.ascontiguousarray(kept, dtype=np.int64),
        np.ascontiguousarray(activations),
        np.ascontiguousarray(errors, dtype=activations.dtype),
        count,
        n_threads,
    )


def largest_absent_per_output(
    topology: Topology,
    kept: IntArray,
    activations: NDArray[Any],
    errors: NDArray[Any],
    counts: IntArray,
    *,
    n_threads: int = 1,
) -> IntArray:
    """Return the empty positions with the largest gradient magnitudes of every output, ascending.

    As `largest_absent`, but for every output on its own: ``counts[j]`` positions of output j, or
    fewer if fewer have a gradient other than 0.

    Parameters
    ----------
    topology : Topology
        The layer.
    kept : ndarray of int64
        Slots that count as occupied, ascending; every other position counts as empty.
    activations, errors : ndarray
        One row per input and one per output, with as many columns.
    counts : ndarray of int64
        How many positions to return at most, one number per output.
    n_threads : int
        Does not change the result.

    Examples
    --------
    >>> topology = Topology.from_pairs((3, 2), [0], [0])
    >>> x, d = np.array([[10.0], [1.0], [2.0]]), np.array([[3.0], [-2.0]])
    >>> largest_absent_per_output(topology, np.array([0]), x, d, np.array([1, 2])).tolist()
    [1, 4, 5]
    """
    return _native.largest_absent_per_output(
        topology.native,
        np.ascontiguousarray(kept, dtype=np.int64),
        np.ascontiguousarray(activations),
        np.ascontiguousarray(errors, dtype=activations.dtype),
        np.ascontiguousarray(counts, dtype=np.int64),
        n_threads,
    )


def empty_among(topology: Topology, kept: IntArray, positions: IntArray) -> IntArray:
    """Return those of ``positions`` that the slots ``kept`` leave empty, in the given order.

    Examples
    --------
    >>> topology = Topology.from_pairs((2, 2), [0, 1], [0, 1])
    >>> empty_among(topology, np.array([0]), np.array([3, 0, 1])).tolist()
    [3, 1]
    """
    return _native.empty_among(
        topology.native,
        np.ascontiguousarray(kept, dtype=np.int64),
        np.ascontiguousarray(positions, dtype=np.int64),
    )


def grow_at(topology: Topology, kept: IntArray, positions: IntArray) -> Rewiring:
    """Keep the slots ``kept`` and grow connections at ``positions``, in the layer's own tiling.

    Examples
    --------
    >>> topology = Topology.from_pairs((2, 2), [0, 1], [0, 1])
    >>> rewiring = grow_at(topology, np.array([1]), np.array([2]))
    >>> rewiring.topology.positions.tolist(), rewiring.origin.tolist()
    ([2, 3], [-1, 1])
    """
    native, origin = _native.grow_at(
        topology.native,
        np.ascontiguousarray(kept, dtype=np.int64),
        np.ascontiguousarray(positions, dtype=np.int64),
    )
    return Rewiring(Topology(native), origin)


def slots_of(topology: Topology, positions: IntArray) -> IntArray:
    """Return the slot of the connection at each position, -1 where the position is empty.

    Examples
    --------
    >>> topology = Topology.from_pairs((2, 2), [0, 1], [0, 1])
    >>> slots_of(topology, np.array([3, 1, 0])).tolist()
    [1, -1, 0]
    """
    return _native.slots_of(topology.native, np.ascontiguousarray(positions, dtype=np.int64))


def laid_out(topology: Topology) -> tuple[Topology, IntArray]:
    """Cut a layer into the tiles that suit its number of connections now.

    Returns
    -------
    topology : Topology
        The same connections.
    order : ndarray of int64
        ``order[slot]`` is the slot a connection had before.
    """
    grid = suited_grid(topology.shape, topology.n_connections)
    native, order = _native.laid_out(topology.native, grid)
    return Topology(native), order
