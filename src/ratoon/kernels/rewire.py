"""SET's prune and grow, native and in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from ratoon import _native
from ratoon.topology import Topology


def rewire_by_sign(
    topology: Topology,
    weights: NDArray[Any],
    carried: Sequence[NDArray[Any]],
    zeta: float,
    *,
    seed: int,
    sigma: float = 0.0,
    weight_seed: int = 0,
    n_threads: int = 1,
) -> tuple[Topology, int]:
    """Replace the fraction ``zeta`` nearest zero of each sign by as many random connections.

    ``weights`` and the ``carried`` arrays (at most two) are moved along in place; new connections
    hold 0 in the latter.  Their weights are `ratoon.kernels.normal` deviates of ``weight_seed``
    with standard deviation ``sigma``, in the order of the slots; 0 where sigma is 0.  Of equal
    weights those in lower slots go first.  A place just vacated may be drawn.

    Returns
    -------
    topology : Topology
        The next topology, with as many connections.
    n_grown : int
        How many of them are new.
    """
    native, n_grown = _native.rewire_by_sign(
        topology.native, weights, list(carried), zeta, sigma, weight_seed, seed, n_threads
    )
    return Topology(native), int(n_grown)
