"""Absent connections with the best path scores (Cannistraci-Hebb link prediction).

A path of length 3 from input i to output j is ``i - b - a - j``: to an output b, back to another
input a, and on to output j.  With n the number of connections of a neuron and c the number of
neighbours that two neurons of the same side have in common, the score of an absent connection is

* ``"ch3_l3p"``: the sum over all paths of ``1 / sqrt((n[a] - c[i, a]) * (n[b] - c[j, b]))``;
* ``"ch2_l3n"``: the sum of ``(c[i, a] + 1) / (n[a] - c[i, a])`` over all distinct a on the paths,
  plus the sum of ``(c[j, b] + 1) / (n[b] - c[j, b])`` over all distinct b.

An inner neuron with many connections outside of the paths contributes little.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ratoon import _native
from ratoon.topology import IntArray, Topology

PATH_SCORES = ("ch3_l3p", "ch2_l3n")
"""Names of the scores; the index is their number in ``native/paths.hpp``."""


def best_by_paths(
    topology: Topology,
    kept: IntArray,
    score: str,
    count: int,
    *,
    seed: int | None = None,
    allowed: Topology | None = None,
    n_threads: int = 1,
) -> tuple[IntArray, NDArray[np.float64]]:
    """Return the ``count`` empty positions with the highest path scores, ascending.

    Exact; of equal scores the lower position is taken.  Positions that no path reaches are not
    returned, so there may be fewer than ``count``.  Time is proportional to the number of paths,
    memory to the numbers of connections and neurons, and to ``count``.

    Parameters
    ----------
    topology : Topology
        The layer.
    kept : ndarray of int64
        Slots that count as connections, ascending; every other position counts as empty.
    score : str
        One of `PATH_SCORES`.
    count : int
        The largest number of positions to return.
    seed : int, optional
        If given, positions are drawn without replacement, with probabilities proportional to their
        scores.
    allowed : Topology, optional
        Return only positions of this topology.
    n_threads : int
        Does not change the result.

    Returns
    -------
    positions : ndarray of int64
        Flat row-major positions.
    values : ndarray of float64
        Their scores; with a seed, the scores divided by exponential random numbers.

    Examples
    --------
    The only path from input 0 to output 1 passes output 0 and input 1, which have two connections
    each, one of them on the path to a common neighbour.

    >>> topology = Topology.from_pairs((2, 2), [0, 1, 1], [0, 0, 1])
    >>> positions, scores = best_by_paths(topology, np.arange(3), "ch3_l3p", 5)
    >>> positions.tolist(), scores.tolist()
    ([1], [1.0])
    """
    positions, values = _native.best_by_paths(
        topology.native,
        np.ascontiguousarray(kept, dtype=np.int64),
        PATH_SCORES.index(score),
        count,
        seed,
        None if allowed is None else allowed.native,
        n_threads,
    )
    return positions, values
