"""The two implementations of SET's prune and grow in its paper, for study and comparison.

Liu et al., "Sparse evolutionary deep learning with over one million artificial neurons on
commodity hardware" (Neural Computing and Applications 33, 2021), gives two implementations of the
same cycle on SciPy matrices: I visits one connection at a time, II works on whole arrays.  Both
draw positions at random and repeat the draw if a position is occupied.  That is fast while a layer
is nearly empty, and takes hundreds of rounds when it is nearly full.  `ratoon.evolution.SET` draws
ranks among the empty positions instead, which takes the same time at any density.

The library does not use these functions.  A test shows that they agree with `SET`; a benchmark
measures their times.  Unlike the released code they never change the number of connections, also
when a weight is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

Matrix = Any  # a SciPy sparse array, inputs x outputs


def rewire_one_by_one(
    weights: Matrix, zeta: float, rng: np.random.Generator, *, sigma: float = 0.1
) -> Matrix:
    """Replace connections one at a time, in Python loops: Implementation I.

    Parameters
    ----------
    weights : SciPy sparse array
        Every stored entry is a connection.
    zeta : float
        Fraction of the connections of each sign to replace.
    rng : numpy.random.Generator
        Random number generator.
    sigma : float
        Standard deviation of new weights.

    Examples
    --------
    >>> before = scipy.sparse.csr_array([[3.0, -1.0, 0, 0], [0, 0.5, 0, -4.0]])
    >>> after = rewire_one_by_one(before, 0.5, np.random.default_rng(0))
    >>> after.nnz, float(after[0, 0]), float(after[1, 3])
    (4, 3.0, -4.0)
    """
    matrix = scipy.sparse.coo_array(weights)
    n_rows, n_columns = matrix.shape
    connections: dict[tuple[int, int], float] = {}
    for row, column, value in zip(*matrix.coords, matrix.data, strict=True):
        connections[int(row), int(column)] = float(value)

    # Removal of small weights, separately for each sign.
    n_missing = 0
    for positive in (True, False):
        positions = [key for key, value in connections.items() if (value >= 0) == positive]
        positions.sort(key=lambda position: abs(connections[position]))
        for position in positions[: round(zeta * len(positions))]:
            del connections[position]
            n_missing += 1

    # Addition of random weights.
    while n_missing > 0:
        position = (int(rng.integers(n_rows)), int(rng.integers(n_columns)))
        if position not in connections:
            connections[position] = float(rng.normal(0.0, sigma))
            n_missing -= 1

    rows, columns = zip(*connections, strict=True) if connections else ((), ())
    values = np.fromiter(connections.values(), dtype=matrix.data.dtype)
    return scipy.sparse.coo_array((values, (rows, columns)), shape=matrix.shape).tocsr()


def rewire_vectorised(
    weights: Matrix, zeta: float, rng: np.random.Generator, *, sigma: float = 0.1
) -> Matrix:
    """Replace connections with array operations: Implementation II.

    The parameters are those of `rewire_one_by_one`.

    Examples
    --------
    >>> before = scipy.sparse.csr_array([[3.0, -1.0, 0, 0], [0, 0.5, 0, -4.0]])
    >>> after = rewire_vectorised(before, 0.5, np.random.default_rng(0))
    >>> after.nnz, float(after[0, 0]), float(after[1, 3])
    (4, 3.0, -4.0)
    """
    matrix = scipy.sparse.coo_array(weights)
    n_rows, n_columns = matrix.shape
    values = matrix.data
    occupied = matrix.coords[0].astype(np.int64) * n_columns + matrix.coords[1]

    # Removal of small weights, separately for each sign.
    is_kept = np.ones(values.size, dtype=bool)
    for slots in (np.flatnonzero(values >= 0), np.flatnonzero(values < 0)):
        weakest_first = slots[np.argsort(np.abs(values[slots]), kind="stable")]
        is_kept[weakest_first[: round(zeta * slots.size)]] = False
    n_missing = int(np.count_nonzero(~is_kept))
    values, occupied = values[is_kept], occupied[is_kept]

    # Addition of random weights: draw the missing number, drop occupied positions.
    new_values = rng.normal(0.0, sigma, size=n_missing).astype(values.dtype)
    while n_missing > 0:
        drawn = rng.integers(n_rows, size=n_missing) * n_columns
        drawn += rng.integers(n_columns, size=n_missing)
        drawn = np.setdiff1d(drawn, occupied)  # also drops repetitions
        occupied = np.concatenate((occupied, drawn))
        n_missing -= drawn.size

    data = np.concatenate((values, new_values))
    coords = (occupied // n_columns, occupied % n_columns)
    return scipy.sparse.coo_array((data, coords), shape=matrix.shape).tocsr()
