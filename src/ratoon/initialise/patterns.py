"""Topologies with a pattern, each with an exact number of connections.

Where a pattern asks for more at one neuron than there is room for, the rest goes to others.
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
    """Give every output the same number of inputs, drawn at random; or one more, for some.

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
    """Connect every output with the inputs nearest to it, then move some connections anywhere.

    Neurons of both sides lie on a circle (after Watts and Strogatz, Nature 393, 1998).  Right
    where neighbouring inputs have to do with each other, as in images and spectra.

    Parameters
    ----------
    shape, n_connections, seed, n_threads
        As for the others.
    shortcuts : float, default=0.1
        Fraction of the connections that are moved to a place drawn at random.

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
    # The k inputs around the place of an output: half of them to the left, half to the right.
    steps = np.arange(n_connections) - np.repeat(np.cumsum(counts) - counts, counts)
    inputs = (outputs * n_in // n_out + steps - counts[outputs] // 2) % n_in
    lattice = Topology.from_pairs(shape, inputs, outputs)
    stays = derive_generator(seed, "shortcuts").random(n_connections) >= shortcuts
    kept = np.flatnonzero(stays)
    return lattice.regrow(
        kept, n_connections - kept.size, seed=derive_seed(seed, "places"), n_threads=n_threads
    ).topology


def scale_free(
    shape: Shape, n_connections: int, *, seed: int, exponent: float = 2.5, n_threads: int = 1
) -> Topology:
    """Give few neurons many connections and many few, so that degrees follow a power law.

    Both ends of a connection are drawn with weights that fall as a power of a neuron's rank (the
    static model of Goh, Kahng and Kim, Physical Review Letters 87, 2001); ranks are dealt out at
    random.  Repetitions are drawn again, a few times; what is then still missing, which happens
    where a layer is nearly full, is drawn uniformly.

    Parameters
    ----------
    shape, n_connections, seed, n_threads
        As for the others.
    exponent : float, default=2.5
        Of the degree distribution; above 2.

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
        positions = _both(positions, ends[0] * shape[1] + ends[1])
    found = Topology.from_positions(shape, positions)
    rest = n_connections - positions.size
    everything = np.arange(positions.size)
    return found.regrow(
        everything, rest, seed=derive_seed(seed, "rest"), n_threads=n_threads
    ).topology


def guided(
    shape: Shape, n_connections: int, strength: ArrayLike, *, seed: int, n_threads: int = 1
) -> Topology:
    """Connect inputs in proportion to a given strength, with outputs drawn at random.

    With strengths that tell how much each input has to do with the target (an F statistic, say),
    this is the largest single improvement on wide data with few samples.

    Parameters
    ----------
    shape, n_connections, seed, n_threads
        As for the others.
    strength : array-like of shape (n_in,)
        Not negative.  Inputs of strength 0 are connected only when all others are full.

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
    """Deal out ``total`` in proportion to weights at random, to nobody more than ``limit``.

    Examples
    --------
    >>> draw_counts(7, np.array([1.0, 0.0, 9.0]), 4, np.random.default_rng(0)).tolist()
    [3, 0, 4]
    """
    counts = np.zeros(weights.size, dtype=np.int64)
    while (missing := total - int(counts.sum())) > 0:
        claims = np.where(counts < limit, weights, 0.0)
        if claims.sum() == 0.0:
            claims = (counts < limit).astype(np.float64)
        counts += rng.multinomial(missing, claims / claims.sum())
        np.minimum(counts, limit, out=counts)
    return counts


def draw_in_rows(
    counts: IntArray, width: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw ``counts[i]`` distinct columns below ``width`` for every row i, uniformly.

    Repetitions are drawn again.  Of rows that are more than half full, the columns left out are
    drawn instead, so that this always ends soon.

    Examples
    --------
    >>> rows, columns = draw_in_rows(np.array([2, 0, 3]), 3, np.random.default_rng(0))
    >>> rows.tolist(), sorted(columns[2:].tolist())
    ([0, 0, 2, 2, 2], [0, 1, 2])
    """
    crowded = 2 * counts > width
    drawn = np.where(crowded, width - counts, counts)
    codes = np.empty(0, dtype=np.int64)
    missing = drawn.copy()
    while missing.any():
        rows = np.repeat(np.arange(counts.size), missing)
        fresh = rows * width + rng.integers(width, size=rows.size)
        codes = _both(codes, fresh)
        missing = drawn - np.bincount(codes // width, minlength=counts.size)
    kept = codes[~crowded[codes // width]]
    full = np.flatnonzero(crowded)
    everything = (full[:, None] * width + np.arange(width)).ravel()
    rest = np.setdiff1d(everything, codes[crowded[codes // width]], assume_unique=True)
    positions = np.sort(np.concatenate((kept, rest)))
    return positions // width, positions % width


def _both(some: IntArray, more: IntArray) -> IntArray:
    """Return what is in either, ascending and once; `numpy.union1d` hashes and is slower."""
    together = np.sort(np.concatenate((some, more)))
    return together[np.diff(together, prepend=-1) > 0]


def _checked(shape: Shape, n_connections: int) -> Shape:
    n_in, n_out = shape
    if not 0 <= n_connections <= n_in * n_out:
        raise InvalidInputError(
            f"a {n_in} -> {n_out} layer has {n_in * n_out} positions, not {n_connections!r}."
        )
    return n_in, n_out


def from_matrix(matrix: Any) -> tuple[Topology, NDArray[Any]]:
    """Take over the connections and weights of a matrix, inputs x outputs.

    Stored entries of a SciPy matrix are connections even where they are 0; of a dense array all
    that is not 0 is.

    Examples
    --------
    >>> topology, weights = from_matrix(np.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> topology.positions.tolist(), weights.tolist()
    ([2, 1], [3.0, 2.0])
    """
    return Topology.from_scipy(matrix)
