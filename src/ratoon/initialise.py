"""How a network starts: how many connections, which ones, and their first weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ratoon import kernels
from ratoon.errors import InvalidParameterError
from ratoon.rng import derive_generator, derive_seed
from ratoon.topology import Topology

STARTS = ("exact", "paper")
INITS = ("he", "set", "zero")


def density_of(shape: tuple[int, int], epsilon: float) -> float:
    """Return SET's density for a layer: ``epsilon * (n_in + n_out)`` connections, at most all.

    Examples
    --------
    >>> density_of((1000, 1000), epsilon=10)
    0.02
    >>> density_of((9000, 3), epsilon=10)
    1.0
    """
    n_in, n_out = shape
    return min(1.0, epsilon * (n_in + n_out) / (n_in * n_out))


def connections_wanted(
    shape: tuple[int, int], *, epsilon: float | None = None, density: float | None = None
) -> int:
    """Return the number of connections that exactly one of epsilon and density asks for.

    Examples
    --------
    >>> connections_wanted((54_675, 27_500), epsilon=10)
    821750
    >>> connections_wanted((100, 50), density=0.1)
    500
    """
    n_in, n_out = shape
    if (epsilon is None) == (density is None):
        raise InvalidParameterError(
            f"give either `epsilon` or `density`, got epsilon={epsilon!r}, density={density!r}."
        )
    if density is not None:
        if not 0.0 < density <= 1.0:
            raise InvalidParameterError(f"`density` must be in (0, 1], got {density!r}.")
        wanted = round(density * n_in * n_out)
        if wanted == 0:
            raise InvalidParameterError(
                f"`density={density!r}` leaves a {n_in} -> {n_out} layer with no connections.\n"
                f"  It has {n_in * n_out} positions, so the density must be at least"
                f" {1 / (n_in * n_out):.3g}."
            )
        return wanted
    assert epsilon is not None
    if not epsilon > 0.0 or not np.isfinite(epsilon):
        raise InvalidParameterError(f"`epsilon` must be a positive number, got {epsilon!r}.")
    wanted = round(density_of(shape, epsilon) * n_in * n_out)
    if wanted == 0:
        raise InvalidParameterError(
            f"`epsilon={epsilon!r}` leaves a {n_in} -> {n_out} layer with no connections.\n"
            f"  A layer gets about epsilon * (n_in + n_out) of them; the authors of SET use 10 or"
            f" 20.\n"
            f"  Set `density` instead if you think in fractions (here density=0.05 keeps"
            f" {round(0.05 * n_in * n_out)} connections).\n"
            f"  If you meant Adam's numerical constant, that one is called `adam_eps` here."
        )
    return wanted


def start_topology(
    shape: tuple[int, int],
    *,
    seed: int,
    epsilon: float | None = None,
    density: float | None = None,
    start: str = "exact",
    n_threads: int = 1,
) -> Topology:
    """Draw an Erdős-Rényi topology.

    Parameters
    ----------
    shape : tuple of int
        Number of inputs, number of outputs.
    seed : int
        Root seed; the topology is a function of it, of the shape and of the counts.
    epsilon, density : float
        One of the two: SET's factor, or the fraction of positions that are connections.
    start : {"exact", "paper"}
        ``"exact"`` draws exactly the wanted number of distinct positions.  ``"paper"`` draws that
        many *with repetition*, as the released code does, and so ends with fewer connections
        where a layer is nearly full.
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
    return Topology.random(shape, wanted, seed=seed, n_threads=n_threads)


def _distinct_of(n_draws: int, n_positions: int, seed: int) -> int:
    """Draw positions with repetition and count the distinct ones.

    Which ones they are is drawn afterwards: given their number, all sets are equally likely.
    """
    draws = derive_generator(seed, "draws").integers(n_positions, size=n_draws)
    return int(np.unique(draws).size)


def first_weights(
    topology: Topology,
    *,
    seed: int,
    init: str = "he",
    dtype: DTypeLike = np.float32,
    n_threads: int = 1,
) -> NDArray[Any]:
    """Draw the weights a layer starts with.

    ``"he"`` gives them the variance 2 / (mean number of incoming connections); ``"set"`` the
    standard deviation 0.1 of the released SET code; ``"zero"`` makes all of them 0.
    """
    if init == "zero":
        return np.zeros(topology.n_connections, dtype=dtype)
    return kernels.normal(
        topology.n_connections,
        weight_scale(topology, init),
        dtype,
        seed=derive_seed(seed, "weights"),
        n_threads=n_threads,
    )


def weight_scale(topology: Topology, init: str) -> float:
    """Return the standard deviation of first weights.

    Examples
    --------
    >>> weight_scale(Topology.full((8, 3)), "he")
    0.5
    """
    if init not in INITS:
        raise InvalidParameterError(f"`init` must be one of {INITS}, got {init!r}.")
    if init == "zero":
        return 0.0
    if init == "set":
        return 0.1
    mean_fan_in = topology.n_connections / topology.shape[1]
    return float(np.sqrt(2.0 / max(mean_fan_in, 1.0)))
