"""Statistics of every feature against the target, kept with a model: O(features).

The F statistic is that of a one-way analysis of variance for classes and that of a linear
regression for numbers; for two classes it is the square of Student's t.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.stats
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from ratoon.arrays import Array
from ratoon.committee import f_statistic
from ratoon.rng import derive_generator
from ratoon.samples.base import Samples

MAX_ROWS = 2000
"""Rows that statistics are computed from; more are sampled at random, so that the cost is small."""

MAX_OUTPUTS = 200
MAX_FEATURES = 2**22

_FEATURES_AT_ONCE = 512
_LARGEST = 3e38
"""A file holds finite numbers of float32."""


@dataclass(frozen=True, eq=False)
class Associations:
    """How every feature differs between classes, or changes with the target.

    Parameters
    ----------
    f : ndarray of shape (n_features,), float32
        F statistic, at most 10,000; 0 for a constant feature.
    difference : ndarray of shape (n_features,), float32
        Two classes: mean of the second minus mean of the first.  More: mean of the highest class
        minus mean of all other samples.  Numbers: slope of the regression on the feature.  In the
        units of the data: of logarithms, a difference is the logarithm of a fold change.
    highest : ndarray of shape (n_features,), int32
        Index of the class with the highest mean; for numbers 1 where the target rises with the
        feature and 0 where it falls; -1 where neither is known.
    n_rows, n_available : int
        Rows the statistics were computed from, and rows there were.
    degrees : tuple of int
        Degrees of freedom of F.
    """

    f: NDArray[np.float32]
    difference: NDArray[np.float32]
    highest: NDArray[np.int32]
    n_rows: int
    n_available: int
    degrees: tuple[int, int]

    @property
    def p_values(self) -> NDArray[np.float64]:
        """Probability of an F at least as large without any association; 1 for constants."""
        between, within = self.degrees
        if within < 1 or between < 1:
            return np.ones(self.f.size)
        found = scipy.stats.f.sf(self.f.astype(np.float64), between, within)
        return np.asarray(np.where(self.f > 0, found, 1.0))

    @property
    def fdr(self) -> NDArray[np.float64]:
        """P values adjusted by Benjamini and Hochberg (1995).

        Among the features with a value of at most a, a fraction of about a is expected to be false.
        """
        return adjusted(self.p_values)

    def take(self, features: NDArray[np.int64]) -> Associations:
        """Return the statistics of some features."""
        return replace(
            self,
            f=self.f[features],
            difference=self.difference[features],
            highest=self.highest[features],
        )

    def signed(self, n_classes: int | None) -> NDArray[np.float64]:
        """Return t, with its sign, for two classes and for numbers; F otherwise."""
        f = self.f.astype(np.float64)
        if self.degrees[0] != 1 or n_classes not in (None, 2):
            return f
        return np.asarray(np.sqrt(f) * np.where(self.difference < 0, -1.0, 1.0))


def adjusted(p_values: Array) -> NDArray[np.float64]:
    """Return p values adjusted by Benjamini and Hochberg; empty stays empty.

    Examples
    --------
    >>> adjusted(np.array([0.01, 0.02, 0.9])).round(3).tolist()
    [0.03, 0.03, 0.9]
    """
    if not p_values.size:
        return np.zeros(0)
    return np.asarray(scipy.stats.false_discovery_control(p_values))


def associations(
    x: Samples,
    targets: Array,
    weights: Array | None,
    codes: Array | None,
    *,
    seed: int,
) -> Associations:
    """Compute the statistics of the rows with positive weights, or of `MAX_ROWS` of them.

    Parameters
    ----------
    x : Samples
        In memory.
    targets : ndarray of shape (n_samples, n_outputs)
        One column per class, or the numbers.
    weights : ndarray, optional
        Weight of each row.
    codes : ndarray of int, optional
        Class of each row; None for numbers and for several labels per sample.
    seed : int
        For the choice of rows.

    Examples
    --------
    >>> from ratoon.samples.in_memory import wrap
    >>> x = wrap(np.array([[0.0, 1.0], [0.2, -1.0], [5.0, 1.0], [5.2, -1.0]]))
    >>> y = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> found = associations(x, y, None, np.array([0, 0, 1, 1]), seed=0)
    >>> found.f.round(2).tolist(), found.difference.tolist(), found.highest.tolist()
    ([1250.0, 0.0], [5.0, 0.0], [1, -1])
    """
    used = np.arange(x.n_rows) if weights is None else np.flatnonzero(weights > 0)
    n_available = used.size
    if used.size > MAX_ROWS:
        rng = derive_generator(seed, "rows of feature statistics")
        used = np.sort(rng.choice(used, MAX_ROWS, replace=False))
    samples = x[used] if used.size < x.n_rows else x
    weight = np.ones(used.size) if weights is None else np.asarray(weights, np.float64)[used]
    weight = weight * (used.size / weight.sum())
    goal = np.asarray(targets, dtype=np.float64)[used]
    groups = None if codes is None else codes[used]
    n_features = x.n_features
    f = np.zeros(n_features, dtype=np.float32)
    difference = np.zeros(n_features, dtype=np.float32)
    highest = np.full(n_features, -1, dtype=np.int32)
    # Products of several threads are rounded differently on another number of threads.
    with threadpool_limits(limits=1, user_api="blas"):
        for part, block, is_constant in _standardised(samples, weight):
            found = f_statistic(block.values, goal, weight)
            f[part] = np.where(is_constant, 0.0, found)
            change, top = _direction(block, goal, weight, groups)
            difference[part] = np.clip(np.where(is_constant, 0.0, change), -_LARGEST, _LARGEST)
            highest[part] = np.where(is_constant | (change == 0.0), -1, top)
        between = int(np.linalg.matrix_rank(goal - np.average(goal, axis=0, weights=weight)))
    return Associations(
        f, difference, highest, int(used.size), int(n_available), (between, used.size - between - 1)
    )


@dataclass(frozen=True, eq=False)
class _Block:
    """Some features divided by their standard deviation; dense ones are centred, too."""

    values: Any
    std: Array


def _standardised(x: Samples, weight: Array) -> Iterator[tuple[slice, _Block, Array]]:
    values = x.values()
    columns = values.tocsc() if x.is_sparse else values
    share = weight / weight.sum()
    for first in range(0, x.n_features, _FEATURES_AT_ONCE):
        part = slice(first, min(first + _FEATURES_AT_ONCE, x.n_features))
        block = columns[:, part]
        if x.is_sparse:
            block = block.tocsr().astype(np.float64)
            mean = share @ block
            square = np.asarray(share @ block.power(2))
            std = np.sqrt(np.maximum(square - mean**2, 0.0))
            size = np.sqrt(square)
        else:
            block = np.array(block, dtype=np.float64)
            mean = share @ block
            block -= mean
            std = np.sqrt(share @ np.square(block))
            size = np.abs(mean)
        is_constant = std <= 1e-9 * np.maximum(size, 1e-300)
        divisor = np.where(is_constant, 1.0, std)
        if x.is_sparse:
            block.data = block.data / divisor[block.indices]
        else:
            block /= divisor
        yield part, _Block(block, divisor), is_constant


def _direction(
    block: _Block, goal: Array, weight: Array, codes: Array | None
) -> tuple[Array, Array]:
    """Return the difference or slope of every feature, and its highest class or its sign."""
    n_features = block.std.size
    if codes is None:
        if goal.shape[1] != 1:  # several targets have no common direction
            return np.zeros(n_features), np.full(n_features, -1)
        centred = (goal[:, 0] - np.average(goal[:, 0], weights=weight)) * weight
        # Features have a variance of 1, and products with centred numbers need no centring.
        slope = np.asarray(centred @ block.values) / weight.sum() / block.std
        return slope, (slope > 0).astype(np.int64)
    present, index = np.unique(codes, return_inverse=True)
    indicator = np.zeros((present.size, index.size))
    indicator[index, np.arange(index.size)] = weight
    counts = indicator.sum(axis=1)
    sums = np.asarray(indicator @ block.values)
    means = sums / counts[:, None]
    top = means.argmax(axis=0)
    if present.size == 2:
        return (means[1] - means[0]) * block.std, present[top]
    columns = np.arange(n_features)
    others = (sums.sum(axis=0) - sums[top, columns]) / np.maximum(
        counts.sum() - counts[top], 1e-300
    )
    return (means[top, columns] - others) * block.std, present[top]
