"""Initial topologies with a pattern and an exact number of connections.

Connections that do not fit at one neuron go to others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.rng import derive_generator, derive_seed
from ratoon.topology import IntArray, Topology

Shape = tuple[int, int]


def fan_in(shape: Shape, n_connections: int, *, seed: int, n_threads: int = 1) -> Topology:
    """Draw the same number of inputs for every output, up to a difference of one.

    Examples
    --------
    >>> fan_in((100, 7), 24, seed=0).degrees()[1].tolist()
    [4, 4, 4, 3, 3, 3, 3]
    """
    del n_threads
    n_in, n_out = _checked(shape, n_connections)
    counts = np.full(n_out, n_connections // n_out)
    counts[: n_connections % n_out] += 1
    outputs, inputs = draw_in_rows(counts, n_in, derive_generator(seed, "fan in"))
    return Topology.from_pairs(shape, inputs, outputs)


def small_world(
    shape: Shape, n_connections: int, *, seed: int, shortcuts: float = 0.1, n_threads: int = 1
) -> Topology:
    """Connect every output to its nearest inputs, then move some connections to random positions.

    Neurons of both sides are placed on a circle (after Watts and Strogatz, Nature 393, 1998).
    Useful if neighbouring inputs are related, as in images and spectra.

    Parameters
    ----------
    shape, n_connections, seed, n_threads
        Shape of the layer, number of connections, seed, and number of threads.
    shortcuts : float, default=0.1
        Fraction of the connections that are moved to random positions.

    Examples
    --------
    >>> small_world((10, 5), 15, seed=0, shortcuts=0.0).to_csr().toarray()[:, 0]
    array([1., 1., 0., 0., 0., 0., 0., 0., 0., 1.], dtype=float32)
    """
    n_in, n_out = _checked(shape, n_connections)
    if not 0.0 <= shortcuts <= 1.0:
        raise InvalidParameterError(f"`shortcuts` must be in [0, 1], got {shortcuts!r}.")
    counts = np.full(n_out, n_connections // n_out)
    counts[: n_connections % n_out] += 1
    outputs = np.repeat(np.arange(n_out), counts)
    # The k inputs around the position of an output, half of them on each side.
    steps = np.arange(n_connections) - np.repeat(np.cumsum(counts) - counts, counts)
    inputs = (outputs * n_in // n_out + steps - counts[outputs] // 2) % n_in
    lattice = Topology.from_pairs(shape, inputs, outputs)
    is_kept = derive_generator(seed, "shortcuts").random(n_connections) >= shortcuts
    kept = np.flatnonzero(is_kept)
    return lattice.regrow(
        kept, n_connections - kept.size, seed=derive_seed(seed, "places"), n_threads=n_threads
    ).topology


def scale_free(
    shape: Shape, n_connections: int, *, seed: int, exponent: float = 2.5, n_threads: int = 1
) -> Topology:
    """Draw a topology whose degrees follow a power law.

    The probability of a neuron falls as a power of its rank (the static model of Goh, Kahng and
    Kim, Physical Review Letters 87, 2001); ranks are random.  Repeated positions are drawn again
    a limited number of times.  In a layer that is nearly full, the rest is drawn uniformly.

    Parameters
    ----------
    shape, n_connections, seed, n_threads
        Shape of the layer, number of connections, seed, and number of threads.
    exponent : float, default=2.5
        Exponent of the degree distribution; above 2.

    Examples
    --------
    >>> degrees = scale_free((500, 500), 5000, seed=0).degrees()[0]
    >>> int(degrees.sum()), bool(degrees.max() > 10 * degrees.mean())
    (5000, True)
    """
    _checked(shape, n_connections)
    if not exponent > 2.0:
        raise InvalidParameterError(f"`exponent` must be above 2, got {exponent!r}.")
    rng = derive_generator(seed, "scale free")
    weights = []
    for width in shape:
        by_rank = np.arange(1, width + 1) ** (-1.0 / (exponent - 1.0))
        weights.append(rng.permutation(by_rank / by_rank.sum()))
    positions = np.empty(0, dtype=np.int64)
    for _ in range(20):
        missing = n_connections - positions.size
        if missing == 0:
            break
        ends = [
            rng.choice(width, size=missing, p=p) for width, p in zip(shape, weights, strict=True)
        ]
        positions = _union(positions, ends[0] * shape[1] + ends[1])
    found = Topology.from_positions(shape, positions)
    rest = n_connections - positions.size
    everything = np.arange(positions.size)
    return found.regrow(
        everything, rest, seed=derive_seed(seed, "rest"), n_threads=n_threads
    ).topology


def guided(
    shape: Shape, n_connections: int, strength: ArrayLike, *, seed: int, n_threads: int = 1
) -> Topology:
    """Draw inputs in proportion to a given strength, and outputs uniformly.

    With strengths that measure the relation of each input to the target, such as an F statistic,
    this is the largest single improvement on wide data with few samples.

    Parameters
    ----------
    shape, n_connections, seed, n_threads
        Shape of the layer, number of connections, seed, and number of threads.
    strength : array-like of shape (n_in,)
        Strengths, not negative.  Inputs of strength 0 are connected only if all others are full.

    Examples
    --------
    >>> degrees = guided((3, 100), 60, [1.0, 0.0, 5.0], seed=0).degrees()[0]
    >>> int(degrees.sum()), int(degrees[1]), bool(degrees[2] > 3 * degrees[0])
    (60, 0, True)
    """
    del n_threads
    n_in, n_out = _checked(shape, n_connections)
    weights = np.asarray(strength, dtype=np.float64)
    if weights.shape != (n_in,) or not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise InvalidInputError(
            f"`strength` must be {n_in} finite numbers, none below 0; got an array of shape"
            f" {weights.shape}."
        )
    rng = derive_generator(seed, "guided")
    counts = draw_counts(n_connections, weights, n_out, rng)
    inputs, outputs = draw_in_rows(counts, n_out, rng)
    return Topology.from_pairs(shape, inputs, outputs)


def draw_counts(
    total: int, weights: NDArray[np.float64], limit: int, rng: np.random.Generator
) -> IntArray:
    """Draw counts that add up to ``total``, in proportion to weights and at most ``limit`` each.

    Examples
    --------
    >>> draw_counts(7, np.array([1.0, 0.0, 9.0]), 4, np.random.default_rng(0)).tolist()
    [3, 0, 4]
    """
    counts = np.zeros(weights.size, dtype=np.int64)
    while (missing := total - int(counts.sum())) > 0:
        p = np.where(counts < limit, weights, 0.0)
        if p.sum() == 0.0:
            p = (counts < limit).astype(np.float64)
        counts += rng.multinomial(missing, p / p.sum())
        np.minimum(counts, limit, out=counts)
    return counts


def draw_in_rows(
    counts: IntArray, width: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw ``counts[i]`` distinct columns below ``width`` for every row i, uniformly.

    Repeated columns are drawn again.  For rows that are more than half full, the columns to leave
    out are drawn instead, so that few draws are repeated.

    Examples
    --------
    >>> rows, columns = draw_in_rows(np.array([2, 0, 3]), 3, np.random.default_rng(0))
    >>> rows.tolist(), sorted(columns[2:].tolist())
    ([0, 0, 2, 2, 2], [0, 1, 2])
    """
    dense = 2 * counts > width
    drawn = np.where(dense, width - counts, counts)
    codes = np.empty(0, dtype=np.int64)
    missing = drawn.copy()
    while missing.any():
        rows = np.repeat(np.arange(counts.size), missing)
        new = rows * width + rng.integers(width, size=rows.size)
        codes = _union(codes, new)
        missing = drawn - np.bincount(codes // width, minlength=counts.size)
    kept = codes[~dense[codes // width]]
    full = np.flatnonzero(dense)
    everything = (full[:, None] * width + np.arange(width)).ravel()
    rest = np.setdiff1d(everything, codes[dense[codes // width]], assume_unique=True)
    positions = np.sort(np.concatenate((kept, rest)))
    return positions // width, positions % width


def _union(some: IntArray, more: IntArray) -> IntArray:
    """Return the sorted union of two arrays; `numpy.union1d` hashes and is slower."""
    together = np.sort(np.concatenate((some, more)))
    return together[np.diff(together, prepend=-1) > 0]


def _checked(shape: Shape, n_connections: int) -> Shape:
    n_in, n_out = shape
    if not 0 <= n_connections <= n_in * n_out:
        raise InvalidInputError(
            f"a {n_in} -> {n_out} layer has {n_in * n_out} positions and cannot have"
            f" {n_connections!r} connections."
        )
    return n_in, n_out


def from_matrix(matrix: Any) -> tuple[Topology, NDArray[Any]]:
    """Return the topology and the weights of a matrix, inputs x outputs.

    Every stored entry of a SciPy matrix is a connection, also if it is 0; of a dense array every
    entry other than 0 is.

    Examples
    --------
    >>> topology, weights = from_matrix(np.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> topology.positions.tolist(), weights.tolist()
    ([2, 1], [3.0, 2.0])
    """
    return Topology.from_scipy(matrix)
