"""Mean and standard deviation of every feature.

Samples are read in blocks and neither copied as a whole nor changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.samples.base import Samples
from ratoon.samples.in_memory import wrap
from ratoon.samples.on_disk_csr import DiskCsrRows

_BLOCK_BYTES = 2 * 2**20


class ConstantFeatureWarning(UserWarning):
    """Some features have the same value in all training samples."""


@dataclass(frozen=True, eq=False)
class FeatureStatistics:
    """Weighted mean, standard deviation, and smallest and largest value of every feature.

    Examples
    --------
    >>> x = np.array([[1.0, 5.0], [3.0, 5.0]])
    >>> found = feature_statistics(x)
    >>> found.mean, found.std, found.constant
    (array([2., 5.]), array([1., 0.]), array([False,  True]))
    """

    mean: NDArray[np.float64]
    std: NDArray[np.float64]
    constant: NDArray[np.bool_]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    per_row: float
    """Stored values of a row; of dense samples all."""

    @property
    def largest(self) -> float:
        """Largest absolute value."""
        return float(max(-self.low.min(initial=0.0), self.high.max(initial=0.0)))

    def factors(self) -> NDArray[np.float64]:
        """Return the factors that make every standard deviation 1; 0 for constant features."""
        factors = np.zeros_like(self.std)
        np.divide(1.0, self.std, out=factors, where=~self.constant)
        return factors


def feature_statistics(x: Any, weights: Array | None = None) -> FeatureStatistics:
    """Compute the statistics of all samples whose weight is not 0.

    A weight of k counts a sample k times.  There are two passes in double precision, so that a
    small spread is found beneath a large mean.

    Parameters
    ----------
    x : Samples, ndarray or sparse matrix of shape (n_samples, n_features)
        Finite numbers.
    weights : ndarray of shape (n_samples,), optional
        Not negative, not all 0.

    Examples
    --------
    >>> x = np.array([[1.0], [3.0], [99.0]])
    >>> feature_statistics(x, np.array([3.0, 1.0, 0.0])).mean
    array([1.5])
    """
    samples = wrap(x)
    weight = np.ones(samples.n_rows) if weights is None else np.asarray(weights, dtype=np.float64)
    used = np.flatnonzero(weight > 0)
    if isinstance(samples, DiskCsrRows):
        return _of_sparse_on_disk(samples, weight)
    if samples.is_sparse:
        selected = samples if used.size == weight.size else samples[used]
        return _of_sparse(selected.values(), weight[used])
    return _of_dense(samples, weight, used)


def _of_dense(x: Samples, weight: Array, used: NDArray[np.intp]) -> FeatureStatistics:
    total = weight[used].sum()
    n_features = x.n_features
    mean, variance = np.zeros(n_features), np.zeros(n_features)
    low, high = np.full(n_features, np.inf), np.full(n_features, -np.inf)
    for rows in _blocks(used, n_features):
        block = np.asarray(x.dense(rows), dtype=np.float64)
        mean += (weight[rows] / total) @ block
        np.minimum(low, block.min(axis=0), out=low)
        np.maximum(high, block.max(axis=0), out=high)
        del block  # before the next block is read
    unit = _unit(low, high)
    for rows in _blocks(used, n_features):
        block = np.array(x.dense(rows), dtype=np.float64)
        block -= mean
        block /= unit
        variance += (weight[rows] / total) @ np.square(block, out=block)
        del block
    return _finished(mean, variance, unit, low, high, n_features, used.size)


def _of_sparse(x: Any, weight: Array) -> FeatureStatistics:
    n_rows, n_features = x.shape
    return _of_sparse_parts(lambda: iter([(x, weight)]), n_rows, n_features, float(weight.sum()))


def _of_sparse_on_disk(x: DiskCsrRows, weight: Array) -> FeatureStatistics:
    def parts() -> Iterator[tuple[Any, Array]]:
        for rows, part in x.parts():
            used = np.flatnonzero(weight[rows] > 0)
            yield part[used] if used.size < part.shape[0] else part, weight[rows][used]

    n_used = int(np.count_nonzero(weight > 0))
    return _of_sparse_parts(parts, n_used, x.n_features, float(weight.sum()))


def _of_sparse_parts(
    parts: Callable[[], Iterator[tuple[Any, Array]]], n_rows: int, n_features: int, total: float
) -> FeatureStatistics:
    """Compute the statistics of CSR arrays with the weights of their rows; ``parts`` runs twice."""
    low, high = np.full(n_features, np.inf), np.full(n_features, -np.inf)
    mean, stored = np.zeros(n_features), np.zeros(n_features)
    counts, variance = np.zeros(n_features, dtype=np.int64), np.zeros(n_features)
    largest = 0.0
    for x, weight in parts():
        share = np.repeat(weight / total, np.diff(x.indptr))
        columns, data = x.indices, x.data.astype(np.float64)
        np.minimum.at(low, columns, data)
        np.maximum.at(high, columns, data)
        counts += np.bincount(columns, minlength=n_features)
        mean += _sums(columns, share * data, n_features)
        stored += _sums(columns, share, n_features)
        largest = max(largest, float(np.abs(data).max(initial=0.0)))
    has_gaps = counts < n_rows
    low[has_gaps] = np.minimum(low[has_gaps], 0.0)
    high[has_gaps] = np.maximum(high[has_gaps], 0.0)
    unit = _unit(low, high)
    for x, weight in parts():
        share = np.repeat(weight / total, np.diff(x.indptr))
        columns = x.indices
        apart = np.square((x.data.astype(np.float64) - mean[columns]) / unit[columns])
        variance += _sums(columns, share * apart, n_features)
    # The zeros, which are not stored, differ from the mean by the mean itself.
    variance += np.maximum(1.0 - stored, 0.0) * np.square(mean / unit)
    return _finished(mean, variance, unit, low, high, float(stored.sum()), n_rows)


def _sums(columns: Array, values: Array, n_columns: int) -> NDArray[np.float64]:
    # bincount returns integers if there are no values
    return np.bincount(columns, values, minlength=n_columns).astype(np.float64)


def _unit(low: Array, high: Array) -> Array:
    """Return a power of two near the values, in units of which squares do not overflow."""
    size = np.maximum(np.abs(low), np.abs(high))
    return np.asarray(np.ldexp(1.0, np.clip(np.frexp(size)[1], -1000, 1000)))


def _finished(
    mean: Array,
    variance: Array,
    unit: Array,
    low: Array,
    high: Array,
    per_row: float,
    n_rows: int,
) -> FeatureStatistics:
    # The mean of equal values is that value, without the rounding of their sum.
    mean = np.where(low == high, low, mean)
    # A spread within rounding error counts as zero.
    rounding = np.square(n_rows * (mean / unit) * np.finfo(np.float64).eps)
    constant = (low == high) | (variance <= rounding)
    std = np.sqrt(variance) * unit
    std[constant] = 0.0
    return FeatureStatistics(mean, std, constant, low, high, per_row)


def _blocks(rows: NDArray[np.intp], n_features: int) -> Iterator[NDArray[np.intp]]:
    size = max(1, _BLOCK_BYTES // (8 * max(n_features, 1)))
    for first in range(0, rows.size, size):
        yield rows[first : first + size]
