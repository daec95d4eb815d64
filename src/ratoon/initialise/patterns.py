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


def brf(
    shape: Shape, n_connections: int, *, seed: int, r: float = 0.25, n_threads: int = 1
) -> Topology:
    """Connect every input mostly to outputs near its own place: a bipartite receptive field.

    Inputs and outputs are placed on a circle.  The outputs of an input are drawn without
    replacement, with probabilities proportional to ``(1 + distance) ** (-(1 - r) / r)``, where the
    distance counts outputs (Zhang et al., 2025).  All inputs have the same number of connections,
    up to a difference of one.  Useful if neighbouring inputs are related.

    Parameters
    ----------
    shape, n_connections, seed, n_threads
        Shape of the layer, number of connections, seed, and number of threads.
    r : float, default=0.25
        Randomness, in (0, 1]: near 0 only the nearest outputs are drawn; at 1 all are equally
        likely.

    Notes
    -----
    Time and memory are proportional to the number of connections, for any ``r``.

    Examples
    --------
    >>> brf((5, 5), 15, seed=0, r=0.01).to_csr().toarray().astype(int)
    array([[1, 1, 0, 0, 1],
           [1, 1, 1, 0, 0],
           [0, 1, 1, 1, 0],
           [0, 0, 1, 1, 1],
           [1, 0, 0, 1, 1]])
    """
    del n_threads
    n_in, n_out = _checked(shape, n_connections)
    if not 0.0 < r <= 1.0:
        raise InvalidParameterError(f"`r` must be in (0, 1], got {r!r}.")
    rng = derive_generator(seed, "receptive fields")
    counts = np.full(n_in, n_connections // n_in)
    counts[rng.permutation(n_in)[: n_connections % n_in]] += 1
    used = np.flatnonzero(counts)
    field = _Field(n_out, int(counts.max(initial=0)), (1.0 - r) / r)
    inputs, outputs = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    n_together = max(1, (1 << 20) // max(1, field.n_near))
    for first in range(0, used.size, n_together):
        rows = used[first : first + n_together]
        drawn, steps = field.draw(counts[rows], rng)
        inputs.append(rows[drawn])
        outputs.append((rows[drawn] * n_out // n_in + steps) % n_out)
    return Topology.from_pairs(shape, np.concatenate(inputs), np.concatenate(outputs))


class _Field:
    """Draws places on a circle without replacement, with weights ``(1 + distance) ** -power``.

    Every place has a key, an exponential random number divided by its weight; the places with the
    smallest keys are the draw.  Near places get their keys at once.  For far places, events of a
    Poisson process are drawn up to a time that grows until enough keys lie below it; the
    first event of a place is its key.  So most far places need no random number.
    """

    def __init__(self, n_places: int, largest_count: int, power: float) -> None:
        self.n_places = n_places
        self.n_near = min(n_places, 2 * largest_count + 2)
        # Steps 0, 1, -1, 2, -2, ...: by distance.
        order = np.arange(n_places)
        self.steps = np.where(order % 2 == 1, (order + 1) // 2, -(order // 2))
        # Relative to the farthest of the near places, so that no weight overflows that matters.
        logs = -power * np.log1p(np.abs(self.steps).astype(np.float64))
        logs -= logs[self.n_near - 1]
        self.near_logs = logs[: self.n_near]
        self.far_ends = np.cumsum(np.exp(logs[self.n_near :]))
        self.horizon = self._time_for(largest_count)

    def _time_for(self, count: int) -> float:
        """Return a time by which, on average, a few more than ``count`` places have an event."""
        wanted = min(count + 3.0 * np.sqrt(count) + 3.0, 0.9 * self.n_near)
        low, high = -800.0, 4.0
        far = float(self.far_ends[-1]) if self.far_ends.size else 0.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            rates = np.exp(np.minimum(self.near_logs + middle, 50.0))
            reached = -np.expm1(-rates).sum() + 0.5 * far * np.exp(middle)
            low, high = (low, middle) if reached > wanted else (middle, high)
        return float(np.exp(high))

    def draw(self, counts: IntArray, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Return the index into ``counts`` and the step of every place drawn."""
        n = counts.size
        near = np.log(rng.exponential(size=(n, self.n_near))) - self.near_logs
        rows = np.repeat(np.arange(n), self.n_near)
        places = np.tile(np.arange(self.n_near), n)
        keys = near.ravel()
        if self.far_ends.size == 0:
            return self._smallest(rows, places, keys, counts)
        waiting, start, end = np.arange(n), 0.0, self.horizon
        while waiting.size:
            total = self.far_ends[-1] * (end - start)
            n_events = rng.poisson(total, size=waiting.size)
            uniform = rng.random(int(n_events.sum())) * self.far_ends[-1]
            found = np.searchsorted(self.far_ends, uniform, side="right")
            far_places = self.n_near + np.minimum(found, self.far_ends.size - 1)
            times = start + (end - start) * rng.random(far_places.size)
            rows = np.concatenate((rows, np.repeat(waiting, n_events)))
            places = np.concatenate((places, far_places))
            keys = np.concatenate((keys, np.log(times)))
            rows, places, keys = self._first_events(rows, places, keys)
            n_reached = np.bincount(rows[keys <= np.log(end)], minlength=n)
            waiting = np.flatnonzero(n_reached < counts)
            start, end = end, 2.0 * end
        return self._smallest(rows, places, keys, counts)

    def _first_events(
        self, rows: IntArray, places: IntArray, keys: NDArray[np.float64]
    ) -> tuple[IntArray, IntArray, NDArray[np.float64]]:
        order = np.lexsort((keys, rows * self.n_places + places))
        rows, places, keys = rows[order], places[order], keys[order]
        is_first = np.diff(rows * self.n_places + places, prepend=-1) > 0
        return rows[is_first], places[is_first], keys[is_first]

    def _smallest(
        self, rows: IntArray, places: IntArray, keys: NDArray[np.float64], counts: IntArray
    ) -> tuple[IntArray, IntArray]:
        order = np.lexsort((keys, rows))
        rows, places = rows[order], places[order]
        first = np.searchsorted(rows, np.arange(counts.size))
        chosen = np.arange(rows.size) - first[rows] < counts[rows]
        return rows[chosen], self.steps[places[chosen]]


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
