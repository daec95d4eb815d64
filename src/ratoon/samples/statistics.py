"""What is learnt from samples before training: mean and spread of every feature.

Nothing here copies or changes the samples; they are read block by block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ratoon.arrays import Array

_BLOCK_BYTES = 2 * 2**20


class ConstantFeatureWarning(UserWarning):
    """Some features have one and the same value in all training samples."""


@dataclass(frozen=True, eq=False)
class FeatureStatistics:
    """Weighted mean and standard deviation of every feature, and which are constant.

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
    largest: float

    def factors(self) -> NDArray[np.float64]:
        """Return what makes the spread of every feature 1; 0 for constant features."""
        factors = np.zeros_like(self.std)
        np.divide(1.0, self.std, out=factors, where=~self.constant)
        return factors


def feature_statistics(x: Any, weights: Array | None = None) -> FeatureStatistics:
    """Look at all samples whose weight is not 0: dense rows, or a CSR matrix.

    A weight of k counts a sample k times.  Two passes in double precision, so that a large mean
    does not swallow a small spread.

    Parameters
    ----------
    x : ndarray or CSR matrix of shape (n_samples, n_features)
        Finite numbers.
    weights : ndarray of shape (n_samples,), optional
        Not negative, not all 0.

    Examples
    --------
    >>> x = np.array([[1.0], [3.0], [99.0]])
    >>> feature_statistics(x, np.array([3.0, 1.0, 0.0])).mean
    array([1.5])
    """
    weight = np.ones(x.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
    used = np.flatnonzero(weight > 0)
    if scipy.sparse.issparse(x):
        return _of_sparse(x if used.size == weight.size else x[used], weight[used])
    return _of_dense(x, weight, used)


def _of_dense(x: Array, weight: Array, used: NDArray[np.intp]) -> FeatureStatistics:
    total = weight[used].sum()
    n_features = x.shape[1]
    mean, variance = np.zeros(n_features), np.zeros(n_features)
    low, high = np.full(n_features, np.inf), np.full(n_features, -np.inf)
    for rows in _blocks(used, n_features):
        block = np.asarray(x[rows], dtype=np.float64)
        mean += (weight[rows] / total) @ block
        np.minimum(low, block.min(axis=0), out=low)
        np.maximum(high, block.max(axis=0), out=high)
        del block  # before the next one comes
    unit = _unit(low, high)
    for rows in _blocks(used, n_features):
        block = np.array(x[rows], dtype=np.float64)
        block -= mean
        block /= unit
        variance += (weight[rows] / total) @ np.square(block, out=block)
        del block
    largest = float(max(-low.min(initial=0.0), high.max(initial=0.0)))
    return _judged(mean, variance, unit, low, high, largest, used.size)


def _of_sparse(x: Any, weight: Array) -> FeatureStatistics:
    total = weight.sum()
    n_rows, n_features = x.shape
    share = np.repeat(weight / total, np.diff(x.indptr))
    columns, data = x.indices, x.data.astype(np.float64)
    low, high = np.full(n_features, np.inf), np.full(n_features, -np.inf)
    np.minimum.at(low, columns, data)
    np.maximum.at(high, columns, data)
    has_gaps = np.bincount(columns, minlength=n_features) < n_rows
    low[has_gaps] = np.minimum(low[has_gaps], 0.0)
    high[has_gaps] = np.maximum(high[has_gaps], 0.0)
    unit = _unit(low, high)
    mean = _sums(columns, share * data, n_features)
    stored = _sums(columns, share, n_features)
    apart = np.square((data - mean[columns]) / unit[columns])
    variance = _sums(columns, share * apart, n_features)
    # The entries that are not stored are zeros, and as far from the mean as it is from 0.
    variance += np.maximum(1.0 - stored, 0.0) * np.square(mean / unit)
    largest = float(np.abs(data).max(initial=0.0))
    return _judged(mean, variance, unit, low, high, largest, n_rows)


def _sums(columns: Array, values: Array, n_columns: int) -> NDArray[np.float64]:
    # bincount counts in integers where there is nothing to add up
    return np.bincount(columns, values, minlength=n_columns).astype(np.float64)


def _unit(low: Array, high: Array) -> Array:
    """Return a power of two as large as the values: squares in it neither over- nor underflow."""
    size = np.maximum(np.abs(low), np.abs(high))
    return np.asarray(np.ldexp(1.0, np.clip(np.frexp(size)[1], -1000, 1000)))


def _judged(
    mean: Array,
    variance: Array,
    unit: Array,
    low: Array,
    high: Array,
    largest: float,
    n_rows: int,
) -> FeatureStatistics:
    # The mean of equal values is that value, not what their rounded sum makes of it.
    mean = np.where(low == high, low, mean)
    # A spread that rounding alone could have made is none.
    rounding = np.square(n_rows * (mean / unit) * np.finfo(np.float64).eps)
    constant = (low == high) | (variance <= rounding)
    std = np.sqrt(variance) * unit
    std[constant] = 0.0
    return FeatureStatistics(mean, std, constant, largest)


def _blocks(rows: NDArray[np.intp], n_features: int) -> Iterator[NDArray[np.intp]]:
    size = max(1, _BLOCK_BYTES // (8 * max(n_features, 1)))
    for first in range(0, rows.size, size):
        yield rows[first : first + size]
