"""SET's prune and grow as its paper writes it down, twice, for study and for comparison.

Liu et al., "Sparse evolutionary deep learning with over one million artificial neurons on
commodity hardware" (Neural Computing and Applications 33, 2021), gives two implementations of the
same cycle on SciPy matrices: I visits one connection at a time, II works on whole arrays.  Both
draw places at random and try again where one is taken.  That ends quickly while a layer is nearly
empty, and takes hundreds of rounds once it is nearly full; what `ratoon.evolution.SET` does
instead (draw ranks among the empty places) takes the same time for any density.

Nothing in the library uses these functions.  A test shows that they and `SET` agree; a benchmark
shows their times.  Where the released code is loose they are exact: the number of connections
never changes, also when a weight is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

Matrix = Any  # a SciPy sparse array, inputs x outputs


def rewire_one_by_one(
    weights: Matrix, zeta: float, rng: np.random.Generator, *, sigma: float = 0.1
) -> Matrix:
    """Replace connections one at a time, in plain Python: Implementation I.

    Parameters
    ----------
    weights : SciPy sparse array
        Every stored entry is a connection.
    zeta : float
        Fraction of the connections of each sign to replace.
    rng : numpy.random.Generator
        Where random numbers come from.
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

    # Removal of small weights, apart for each sign.
    n_missing = 0
    for positive in (True, False):
        places = [place for place, value in connections.items() if (value >= 0) == positive]
        places.sort(key=lambda place: abs(connections[place]))
        for place in places[: round(zeta * len(places))]:
            del connections[place]
            n_missing += 1

    # Addition of random weights.
    while n_missing > 0:
        place = (int(rng.integers(n_rows)), int(rng.integers(n_columns)))
        if place not in connections:
            connections[place] = float(rng.normal(0.0, sigma))
            n_missing -= 1

    rows, columns = zip(*connections, strict=True) if connections else ((), ())
    values = np.fromiter(connections.values(), dtype=matrix.data.dtype)
    return scipy.sparse.coo_array((values, (rows, columns)), shape=matrix.shape).tocsr()


def rewire_vectorised(
    weights: Matrix, zeta: float, rng: np.random.Generator, *, sigma: float = 0.1
) -> Matrix:
    """Replace connections on whole arrays: Implementation II.

    Takes the parameters of `rewire_one_by_one`.

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

    # Removal of small weights, apart for each sign.
    stays = np.ones(values.size, dtype=bool)
    for slots in (np.flatnonzero(values >= 0), np.flatnonzero(values < 0)):
        weakest_first = slots[np.argsort(np.abs(values[slots]), kind="stable")]
        stays[weakest_first[: round(zeta * slots.size)]] = False
    n_missing = int(np.count_nonzero(~stays))
    values, occupied = values[stays], occupied[stays]

    # Addition of random weights: draw as many as are missing, drop those that are taken.
    fresh = rng.normal(0.0, sigma, size=n_missing).astype(values.dtype)
    while n_missing > 0:
        drawn = rng.integers(n_rows, size=n_missing) * n_columns
        drawn += rng.integers(n_columns, size=n_missing)
        drawn = np.setdiff1d(drawn, occupied)  # also drops repetitions
        occupied = np.concatenate((occupied, drawn))
        n_missing -= drawn.size

    data = np.concatenate((values, fresh))
    coords = (occupied // n_columns, occupied % n_columns)
    return scipy.sparse.coo_array((data, coords), shape=matrix.shape).tocsr()
