"""Initial weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ratoon import kernels
from ratoon.errors import InvalidParameterError
from ratoon.rng import derive_seed
from ratoon.topology import Topology

INITS = ("he", "set", "zero")


def first_weights(
    topology: Topology,
    *,
    seed: int,
    init: str = "he",
    dtype: DTypeLike = np.float32,
    n_threads: int = 1,
) -> NDArray[Any]:
    """Draw the initial weights of a layer.

    With ``"he"`` their variance is 2 / (mean number of incoming connections); with ``"set"`` their
    standard deviation is 0.1, as in the released SET code; with ``"zero"`` all are 0.
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
    """Return the standard deviation of initial weights.

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
