"""SET's prune and grow, native and in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon import _native
from ratoon.topology import IntArray, Topology


def rewire_by_sign(
    topology: Topology,
    weights: NDArray[Any],
    carried: Sequence[NDArray[Any]],
    zeta: float,
    *,
    seed: int,
    n_threads: int = 1,
) -> tuple[Topology, IntArray]:
    """Replace the fraction ``zeta`` nearest zero of each sign by as many random connections.

    ``weights`` and the ``carried`` arrays are moved along in place; new connections hold 0 in all
    of them.  Of equal weights those in lower slots go first.  A place just vacated may be drawn.

    Returns
    -------
    topology : Topology
        The next topology, with as many connections.
    grown : ndarray of int64
        The slots of the new connections, ascending.
    """
    n_negative = _native.count_negative(weights, n_threads)
    counts = (round(zeta * n_negative), round(zeta * (topology.n_connections - n_negative)))
    native, grown = _native.rewire_by_sign(
        topology.native, weights, list(carried), counts[0], counts[1], seed, n_threads
    )
    return Topology(native), np.asarray(grown)
