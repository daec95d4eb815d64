"""Which connections a layer starts with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ratoon.errors import InvalidParameterError
from ratoon.initialise.counts import connections_wanted
from ratoon.initialise.patterns import fan_in, scale_free, small_world
from ratoon.rng import derive_generator
from ratoon.topology import Topology

PATTERNS: dict[str, Callable[..., Topology]] = {
    "fan_in": fan_in,
    "small_world": small_world,
    "scale_free": scale_free,
}
STARTS = ("exact", "paper", *PATTERNS)


def start_topology(
    shape: tuple[int, int],
    *,
    seed: int,
    epsilon: float | None = None,
    density: float | None = None,
    start: str = "exact",
    n_threads: int = 1,
) -> Topology:
    """Draw the topology a layer starts with.

    Parameters
    ----------
    shape : tuple of int
        Number of inputs, number of outputs.
    seed : int
        Root seed; the topology is a function of it, of the shape and of the counts.
    epsilon, density : float
        One of the two: SET's factor, or the fraction of positions that are connections.
    start : str
        ``"exact"`` draws exactly the wanted number of distinct positions, all sets of them being
        equally likely (Erdős-Rényi).  ``"paper"`` draws that many *with repetition*, as the
        released code does, and so ends with fewer connections where a layer is nearly full.
        ``"fan_in"``, ``"small_world"`` and ``"scale_free"`` are the functions of these names in
        `ratoon.initialise.patterns`, with their defaults.
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
    if start == "paper":
        n_draws = wanted if epsilon is None else round(epsilon * (shape[0] + shape[1]))
        wanted = _distinct_of(n_draws, shape[0] * shape[1], seed)
    if start in PATTERNS:
        return PATTERNS[start](shape, wanted, seed=seed, n_threads=n_threads)
    return Topology.random(shape, wanted, seed=seed, n_threads=n_threads)


def _distinct_of(n_draws: int, n_positions: int, seed: int) -> int:
    """Draw positions with repetition and count the distinct ones.

    Which ones they are is drawn afterwards: given their number, all sets are equally likely.
    """
    draws = derive_generator(seed, "draws").integers(n_positions, size=n_draws)
    return int(np.unique(draws).size)
