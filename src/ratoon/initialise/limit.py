"""Layers within a limit: what they start with, and whether a topology keeps to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon.errors import InvalidInputError
from ratoon.kernels.absent import slots_of
from ratoon.rng import derive_generator
from ratoon.topology import Topology, Within


def start_within(within: Within, *, seed: int) -> tuple[Topology, Topology]:
    """Return the connections a layer starts with, and those it may have.

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
    """Return the stored entries of a SciPy matrix as connections; a topology as it is."""
    return matrix if isinstance(matrix, Topology) else Topology.from_scipy(matrix)[0]


def n_outside(topology: Topology, allowed: Topology) -> int:
    """Count the connections that are not allowed.

    Examples
    --------
    >>> allowed = Topology.from_pairs((2, 2), [0, 1], [0, 1])
    >>> n_outside(Topology.from_pairs((2, 2), [0, 1], [0, 0]), allowed)
    1
    """
    return int(np.count_nonzero(slots_of(allowed, topology.positions) < 0))


def check_within(topology: Topology, allowed: Topology, who: str) -> None:
    """Raise unless every connection is allowed."""
    if topology.shape != allowed.shape:
        raise InvalidInputError(
            f"a layer {topology.shape[0]} -> {topology.shape[1]} cannot have a limit"
            f" {allowed.shape[0]} -> {allowed.shape[1]}."
        )
    if n_beyond := n_outside(topology, allowed):
        raise InvalidInputError(
            f"{who} has {n_beyond:,} of {topology.n_connections:,} connections where the layer's"
            f" limit allows none."
        )
