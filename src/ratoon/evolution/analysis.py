"""Analysis of topologies: degrees, power laws, exploration, distance.

`ratoon.training.recorder.TopologyRecorder` records the topologies of a training at every epoch and
the ages of connections.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import ArrayLike, NDArray

from ratoon.errors import InvalidInputError
from ratoon.topology import IntArray, Topology

MAX_MATCHED = 4000
"""Maximum number of neurons for `matched_distance`, whose cost matrix has its square in entries."""


def degree_distribution(degrees: ArrayLike) -> tuple[IntArray, IntArray]:
    """Return the degrees that occur, ascending, and the number of neurons with each.

    Examples
    --------
    >>> degree_distribution([1, 3, 1, 0])
    (array([0, 1, 3]), array([1, 2, 1]))
    """
    counts = np.bincount(np.asarray(degrees, dtype=np.int64))
    present = np.flatnonzero(counts)
    return present, counts[present]


@dataclass(frozen=True)
class PowerLaw:
    """A power law fitted to the tail of a degree distribution: p(k) proportional to k^-exponent.

    ``distance`` is the largest difference between the fitted and the empirical cumulative
    distribution over the tail.  To see whether a distance is small, compare it with that of random
    topologies.
    """

    exponent: float
    least: int
    n_tail: int
    distance: float


def fit_power_law(degrees: ArrayLike, *, least: int | None = None) -> PowerLaw:
    """Fit a power law by maximum likelihood (Clauset, Shalizi and Newman, SIAM Review 51, 2009).

    Parameters
    ----------
    degrees : array-like of int
        Degrees of all neurons; zeros are ignored.
    least : int, optional
        Smallest degree of the tail.  The default is the one with the smallest distance that leaves
        at least ten neurons and two different degrees.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> degrees = np.floor(4.5 * rng.random(20_000) ** (-1 / 1.5) + 0.5)  # exponent 2.5
    >>> round(fit_power_law(degrees).exponent, 1)
    2.5
    """
    present, counts = degree_distribution(degrees)
    present, counts = present[present > 0], counts[present > 0]
    if present.size < 2:
        raise InvalidInputError("a power law needs neurons with at least two different degrees.")
    starts = present[:-1] if least is None else np.array([least])
    fits = [_fit_tail(present, counts, int(start)) for start in starts]
    enough = [fit for fit in fits if fit.n_tail >= 10] or fits[:1]
    return min(enough, key=lambda fit: fit.distance)


def _fit_tail(present: IntArray, counts: IntArray, least: int) -> PowerLaw:
    tail = present >= least
    k, n = present[tail].astype(np.float64), counts[tail]
    total = int(n.sum())
    # Continuous likelihood with a correction of one half: accurate from about 6 (Clauset 3.5).
    spread = float((n * np.log(k / (least - 0.5))).sum())
    exponent = 1.0 + total / spread if spread > 0 else np.inf
    actual = np.cumsum(n) / total
    fitted = 1.0 - ((k + 0.5) / (least - 0.5)) ** (1.0 - exponent)
    return PowerLaw(float(exponent), least, total, float(np.abs(actual - fitted).max()))


def exploration(positions: Iterable[IntArray], n_positions: int) -> list[float]:
    """Return the fraction of a layer's positions ever used, after each topology.

    By in-time over-parameterization (Liu et al., ICML 2021), a high fraction allows a sparse
    network to be as accurate as a dense one.

    Parameters
    ----------
    positions : iterable of ndarray
        Positions in use, one array per topology, in temporal order.
    n_positions : int
        Number of positions of the layer.

    Examples
    --------
    >>> exploration([np.array([0, 1]), np.array([1, 2]), np.array([0, 2])], 10)
    [0.2, 0.3, 0.3]
    """
    seen = np.empty(0, dtype=np.int64)
    rates = []
    for here in positions:
        together = np.sort(np.concatenate((seen, here)))
        seen = together[np.diff(together, prepend=-1) > 0]
        rates.append(seen.size / n_positions)
    return rates


def distance(one: Topology, other: Topology) -> float:
    """Return the fraction of connections that two topologies do not have in common, from 0 to 1.

    Examples
    --------
    >>> a = Topology.from_positions((2, 3), [0, 1, 2])
    >>> b = Topology.from_positions((2, 3), [1, 2, 3])
    >>> round(distance(a, b), 3)
    0.333
    """
    if one.shape != other.shape:
        raise InvalidInputError(f"cannot compare layers of shapes {one.shape} and {other.shape}.")
    total = one.n_connections + other.n_connections
    if total == 0:
        return 0.0
    common = np.intersect1d(one.positions, other.positions, assume_unique=True).size
    return 1.0 - 2.0 * common / total


def matched_distance(one: Topology, other: Topology) -> float:
    """Return the distance after the best one-to-one matching of outputs.

    The order of hidden neurons is random, so two networks may be equal up to that order without a
    common connection.  This is the layer-wise step of NNSTD (Liu et al., ECML 2020): neurons are
    compared by their inputs, the best one-to-one matching is found, and the costs of matched
    neurons are averaged.  For up to 4,000 outputs; time is proportional to their cube.

    Examples
    --------
    >>> a = Topology.from_pairs((4, 2), inputs=[0, 1, 2, 3], outputs=[0, 0, 1, 1])
    >>> b = Topology.from_pairs((4, 2), inputs=[0, 1, 2, 3], outputs=[1, 1, 0, 0])
    >>> distance(a, b), matched_distance(a, b)
    (1.0, 0.0)
    """
    if one.shape != other.shape:
        raise InvalidInputError(f"cannot compare layers of shapes {one.shape} and {other.shape}.")
    if one.shape[1] > MAX_MATCHED:
        raise InvalidInputError(
            f"matching takes at most {MAX_MATCHED} outputs, got {one.shape[1]}; use `distance`."
        )
    common: NDArray[Any] = (one.to_csr().T @ other.to_csr()).toarray()
    degrees = np.add.outer(one.degrees()[1], other.degrees()[1])
    costs = 1.0 - np.divide(2.0 * common, degrees, out=np.ones(common.shape), where=degrees > 0)
    matched = scipy.optimize.linear_sum_assignment(costs)
    return float(costs[matched].mean())
