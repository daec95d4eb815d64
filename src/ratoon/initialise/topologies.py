"""Initial topologies: by name, within a limit, and with idle neurons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.initialise.counts import connections_wanted
from ratoon.initialise.patterns import brf, fan_in, scale_free, small_world
from ratoon.kernels.absent import slots_of
from ratoon.memory import require_memory
from ratoon.rng import derive_generator, derive_seed
from ratoon.topology import Topology, Within

PATTERNS: dict[str, Callable[..., Topology]] = {
    "fan_in": fan_in,
    "small_world": small_world,
    "scale_free": scale_free,
    "brf": brf,
}
STARTS = ("exact", "paper", *PATTERNS)

_BYTES_PER_CONNECTION = 8  # an index and what it is drawn from, or an index and a weight


def start_topology(
    shape: tuple[int, int],
    *,
    seed: int,
    epsilon: float | None = None,
    density: float | None = None,
    start: str = "exact",
    n_threads: int = 1,
) -> Topology:
    """Draw the initial topology of a layer.

    Parameters
    ----------
    shape : tuple of int
        Number of inputs, number of outputs.
    seed : int
        Root seed; the topology depends only on it, the shape and the number of connections.
    epsilon, density : float
        One of the two: the factor of SET, or the fraction of positions that are connections.
    start : str
        ``"exact"`` draws exactly the requested number of distinct positions, all sets of them
        being equally likely (Erdős-Rényi).  ``"paper"`` draws them *with repetition*, as the
        released code does, which gives fewer connections if a layer is nearly full.
        ``"fan_in"``, ``"small_world"``, ``"scale_free"`` and ``"brf"`` are the functions of these
        names in `ratoon.initialise.patterns`, with their defaults.
    n_threads : int
        Does not change the result.

    Examples
    --------
    >>> start_topology((9000, 3), epsilon=10, seed=0).n_connections
    27000
    >>> 25_900 < start_topology((9000, 3), epsilon=10, seed=0, start="paper").n_connections < 26_200
    True
    """
    if start not in STARTS:
        raise InvalidParameterError(f"`start` must be one of {STARTS}, got {start!r}.")
    wanted = connections_wanted(shape, epsilon=epsilon, density=density)
    require_memory(
        wanted * _BYTES_PER_CONNECTION,
        f"a layer {shape[0]:,} -> {shape[1]:,} of {wanted:,} connections",
        "Reduce the widths, or the number of connections (`epsilon` or `density`).",
    )
    if start == "paper":
        n_draws = wanted if epsilon is None else round(epsilon * (shape[0] + shape[1]))
        wanted = _distinct_of(n_draws, shape[0] * shape[1], seed)
    if start in PATTERNS:
        return PATTERNS[start](shape, wanted, seed=seed, n_threads=n_threads)
    return Topology.random(shape, wanted, seed=seed, n_threads=n_threads)


def _distinct_of(n_draws: int, n_positions: int, seed: int) -> int:
    """Return the number of distinct positions among draws with repetition.

    The positions themselves are drawn later: given their number, all sets are equally likely.
    """
    draws = derive_generator(seed, "draws").integers(n_positions, size=n_draws)
    return int(np.unique(draws).size)


def start_within(within: Within, *, seed: int) -> tuple[Topology, Topology]:
    """Return the initial connections of a layer and its allowed ones.

    Examples
    --------
    >>> import scipy.sparse
    >>> start, allowed = start_within(Within(scipy.sparse.eye_array(6), density=0.5), seed=0)
    >>> start.n_connections, allowed.n_connections, n_outside(start, allowed)
    (3, 6, 0)
    """
    allowed = as_topology(within.matrix)
    if allowed.n_connections == 0:
        raise InvalidInputError(f"{within!r}: a layer without any connection cannot learn.")
    if within.start is not None:
        start = as_topology(within.start)
        if start.shape != allowed.shape:
            raise InvalidInputError(
                f"{within!r}: `start` is {start.shape[0]} -> {start.shape[1]}, the limit is"
                f" {allowed.shape[0]} -> {allowed.shape[1]}."
            )
        check_within(start, allowed, "`start`")
        return start, allowed
    generator = derive_generator(seed, "within")
    slots = generator.choice(
        allowed.n_connections, size=within.n_connections, replace=False, shuffle=False
    )
    inputs, outputs = allowed.pairs()
    return Topology.from_pairs(allowed.shape, inputs[slots], outputs[slots]), allowed


def as_topology(matrix: Any) -> Topology:
    """Return the stored entries of a SciPy matrix as a topology; return a topology unchanged."""
    return matrix if isinstance(matrix, Topology) else Topology.from_scipy(matrix)[0]


def n_outside(topology: Topology, allowed: Topology) -> int:
    """Return the number of connections that are not allowed.

    Examples
    --------
    >>> allowed = Topology.from_pairs((2, 2), [0, 1], [0, 1])
    >>> n_outside(Topology.from_pairs((2, 2), [0, 1], [0, 0]), allowed)
    1
    """
    return int(np.count_nonzero(slots_of(allowed, topology.positions) < 0))


def check_within(topology: Topology, allowed: Topology, owner: str) -> None:
    """Raise unless every connection is allowed."""
    if topology.shape != allowed.shape:
        raise InvalidInputError(
            f"a layer {topology.shape[0]} -> {topology.shape[1]} cannot have a limit"
            f" {allowed.shape[0]} -> {allowed.shape[1]}."
        )
    if n_beyond := n_outside(topology, allowed):
        raise InvalidInputError(
            f"{owner} has {n_beyond:,} of {topology.n_connections:,} connections where the layer's"
            f" limit allows none."
        )


def seed_topologies(
    widths: Sequence[int],
    in_use: Sequence[int],
    *,
    seed: int,
    epsilon: float | None = None,
    density: float | None = None,
    n_threads: int = 1,
) -> list[Topology]:
    """Draw the topologies of a network in which only some hidden neurons are connected.

    Epsilon and density refer to the network of connected neurons.  Pass the result to
    ``SparseMLP.start(widths, topologies=...)`` and train with `ratoon.evolution.NeST`, which
    connects idle neurons.

    Parameters
    ----------
    widths : sequence of int
        Neurons per layer, including inputs and outputs.
    in_use : sequence of int
        Connected neurons per hidden layer.

    Examples
    --------
    >>> first, last = seed_topologies((50, 100, 3), (10,), density=0.2, seed=0)
    >>> first, last
    (Topology(50 -> 100, 100 connections, density 0.02), Topology(100 -> 3, 6 connections, ...))
    >>> int((first.degrees()[1] > 0).sum())
    10
    """
    if len(in_use) != len(widths) - 2 or any(
        not 1 <= used <= width for used, width in zip(in_use, widths[1:-1], strict=False)
    ):
        raise InvalidParameterError(
            f"`in_use` must be between 1 and the width of each hidden layer of {tuple(widths)!r},"
            f" got {tuple(in_use)!r}."
        )
    small = [widths[0], *in_use, widths[-1]]
    topologies = []
    for index, (shape, wide) in enumerate(zip(pairwise(small), pairwise(widths), strict=True)):
        topology = start_topology(
            shape,
            seed=derive_seed(seed, "layer", index),
            epsilon=epsilon,
            density=density,
            n_threads=n_threads,
        )
        topologies.append(Topology.from_pairs(wide, *topology.pairs()))
    return topologies
