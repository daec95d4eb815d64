"""What a committee is fitted to: samples and targets, standardised and centred features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.kernels import Scaling
from ratoon.samples.statistics import feature_statistics

MIN_SAMPLES, MAX_SAMPLES, MIN_FEATURES, MAX_ENTRIES = 20, 3000, 100, 100_000_000
MAX_SPARSE_FEATURES = 300_000

MANY_SAMPLES = 500
"""Above this number of samples a single validation split replaces cross-validation."""

CLIP = 3.0
"""Largest absolute value of a standardised feature."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Training data of a committee."""

    x: Any  # dense or CSR samples as float32; CSR stays sparse
    targets: Array  # (samples, outputs): -1 and 1 for classes, any number for regression
    weights: Array  # of the samples
    groups: NDArray[np.int64] | None  # classes, to stratify the folds; None for regression
    kind: str  # "softmax": one class of several, "sigmoid": labels, "squared": numbers
    together: NDArray[np.int64] | None = None  # samples of a number stay in the same fold

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return int(self.x.shape[0])

    @property
    def has_many_samples(self) -> bool:
        """Whether a single validation split is enough."""
        return self.n_samples > MANY_SAMPLES

    def take(self, rows: NDArray[np.intp]) -> Problem:
        """Return the problem restricted to some samples."""
        groups = None if self.groups is None else self.groups[rows]
        together = None if self.together is None else self.together[rows]
        x, targets, weights = self.x[rows], self.targets[rows], self.weights[rows]
        return Problem(x, targets, weights, groups, self.kind, together)

    def centred_targets(self) -> tuple[Array, Array]:
        """Return centred targets times the root of the sample weights, and the weighted means."""
        weights = self.weights / self.weights.mean()
        mean = np.average(self.targets, axis=0, weights=weights)
        return (self.targets - mean) * np.sqrt(weights)[:, None], mean


def suits(n_samples: int, n_features: int, n_stored: int | None = None) -> bool:
    """Return whether data of this shape are suited to a committee: few samples, many features.

    ``n_stored`` is the number of stored entries of a sparse X.  Larger data have enough samples
    for iterative training, and the samples-by-samples matrices of a committee would be too large.

    Examples
    --------
    >>> suits(60, 50_000), suits(1_000_000, 100), suits(60, 4)
    (True, False, False)
    >>> suits(2_000, 200_000), suits(2_000, 200_000, n_stored=300_000)
    (False, True)
    """
    if not (MIN_SAMPLES <= n_samples <= MAX_SAMPLES and n_features >= MIN_FEATURES):
        return False
    if n_stored is None:
        return n_samples * n_features <= MAX_ENTRIES
    return n_stored <= MAX_ENTRIES and n_features <= MAX_SPARSE_FEATURES


@dataclass(frozen=True, eq=False)
class Standardisation:
    """How features are read: ``z = clip((x - mean) * factors) * gains``, with unit variance.

    Values are clipped to 3 standard deviations around the mean.  That would cut off nearly all
    values of a rare word, so a feature that is 0 in most samples and never negative is clipped to
    twice its mean positive value instead.  Sparse features are scaled but not centred, so that
    zeros stay zeros; `CentredRows` centres them implicitly.  Their limits are the same below and
    above 0.
    """

    mean: Array  # of the clipped values where most are 0
    std: Array  # the same; 0 for a constant feature
    factors: Array  # the scale of the network's input
    centres: bool
    clip: float  # 0 for none

    @classmethod
    def of_scaling(cls, scaling: Scaling, x: Any, weights: Array) -> Standardisation:
        """Return a scaling that is given; where it does not centre, the means are those of x.

        Examples
        --------
        >>> scaling = Scaling(np.array([1.0, 5.0]), np.array([0.5, 0.0]), 0.0)
        >>> x = np.array([[0.0, 5.0], [9.0, 5.0]], dtype=np.float32)
        >>> Standardisation.of_scaling(scaling, x, np.ones(2)).transform(x).tolist()
        [[-0.5, 0.0], [4.0, 0.0]]
        """
        factors = np.asarray(scaling.scale, dtype=np.float64)
        centres = scaling.shift is not None
        mean = scaling.shift if centres else (weights / weights.sum()) @ x
        mean = np.asarray(mean, dtype=np.float64)
        return cls(mean, _inverse(factors), factors, centres, scaling.clip)

    @classmethod
    def fit(cls, x: Any, weights: Array) -> Standardisation:
        """Compute means and standard deviations of dense or sparse samples."""
        centres = not scipy.sparse.issparse(x)
        limits = _limits(x, weights)
        is_limited = np.isfinite(limits)
        if is_limited.any():
            x = _limited(x, limits)
        if centres:
            proportion = (weights / weights.sum()).astype(np.float64)
            mean = proportion @ x
            std = np.sqrt(proportion @ np.square(x - mean.astype(x.dtype), dtype=np.float64))
            std = np.where(std <= 1e-6 * np.maximum(1.0, np.abs(mean)), 0.0, std)
        else:
            found = feature_statistics(x, weights)
            mean, std = found.mean, found.std
        factors = _inverse(std)
        reach = limits - mean if centres else limits
        if not centres:  # 3 standard deviations around the mean, not around 0
            reach = np.where(is_limited, limits, np.abs(mean) + CLIP * std)
            is_limited[:] = True
        factors[is_limited & (std > 0)] = CLIP / reach[is_limited & (std > 0)]
        return cls(mean, std, factors, centres, CLIP)

    @property
    def gains(self) -> NDArray[np.float64]:
        """Factors of the clipped values; 1 where the limit is 3 standard deviations from 0."""
        return np.where(self.std > 0, _inverse(self.std * self.factors), 1.0)

    @property
    def scaling(self) -> Scaling:
        """The same standardisation, without the gains, as the input scaling of a network."""
        return Scaling(self.mean if self.centres else None, self.factors, self.clip)

    @property
    def remaining_mean(self) -> NDArray[np.float64] | None:
        """Means of the standardised features where they are not centred, else None."""
        return None if self.centres else self.mean * _inverse(self.std)

    def transform(self, x: Any) -> Any:
        """Return standardised features as float32, sparse if x is.

        Examples
        --------
        >>> x = np.array([[0.0, 5.0], [2.0, 5.0]], dtype=np.float32)
        >>> Standardisation.fit(x, np.ones(2)).transform(x).tolist()
        [[-1.0, 0.0], [1.0, 0.0]]
        """
        factors, gains = self.factors.astype(np.float32), self.gains.astype(np.float32)
        clip = self.clip or np.inf
        if scipy.sparse.issparse(x):
            z = scale_csr(x, None, factors)
            np.clip(z.data, -clip, clip, out=z.data)
            z.data *= gains[z.indices]
            return z
        z = (x - self.mean.astype(np.float32)) * factors
        z = np.asarray(np.clip(z, -clip, clip, out=z), dtype=np.float32)
        return z if np.all(gains == 1.0) else z * gains


def _inverse(values: Array) -> NDArray[np.float64]:
    """Return 1 / values, 0 for 0."""
    return np.divide(1.0, values, out=np.zeros(values.shape), where=values > 0)


def _limits(x: Any, weights: Array) -> NDArray[np.float64]:
    """Return twice the mean positive value of features that are mostly 0, infinity for others.

    Examples
    --------
    >>> x = np.array([[0.0, 1.0, 0.0], [0.0, 2.0, 0.0], [1.0, 3.0, -1.0]])
    >>> _limits(x, np.ones(3)).tolist()
    [2.0, inf, inf]
    """
    n_positive = (x > 0).sum(axis=0)
    is_mostly_0 = (n_positive > 0) & (2 * n_positive < x.shape[0])
    found = np.flatnonzero(is_mostly_0 & ((x < 0).sum(axis=0) == 0))
    part = x[:, found]
    weights = weights.astype(part.dtype)
    limits = np.full(x.shape[1], np.inf)
    limits[found] = 2.0 * (weights @ part) / (weights @ (part > 0).astype(part.dtype))
    return limits


def _limited(x: Any, limits: Array) -> Any:
    """Return features with values up to these limits."""
    limits = limits.astype(x.dtype)
    if not scipy.sparse.issparse(x):
        return np.minimum(x, limits)
    data = np.minimum(x.data, limits[x.indices])
    return scipy.sparse.csr_array((data, x.indices, x.indptr), shape=x.shape)


@dataclass(frozen=True, eq=False)
class CentredRows:
    """Centred features, each row multiplied by the root of its sample weight.

    Sparse rows are centred implicitly: subtracting the mean would fill the matrix, but products
    of centred rows follow from the products of the rows and their mean.
    """

    rows: Any  # centred if dense, not centred if CSR; times the root of the weights
    mean: Array  # weighted mean of every feature
    root: Array  # of the sample weights, scaled to a mean weight of 1

    @classmethod
    def of(cls, features: Any, weights: Array) -> CentredRows:
        """Centre dense or sparse features.

        Examples
        --------
        >>> x = np.array([[1.0, 0.0], [3.0, 0.0]])
        >>> CentredRows.of(x, np.ones(2)).rows.tolist()
        [[-1.0, 0.0], [1.0, 0.0]]
        >>> CentredRows.of(scipy.sparse.csr_array(x), np.ones(2)).columns([0]).tolist()
        [[-1.0], [1.0]]
        """
        root = np.sqrt(weights / weights.mean())
        proportion = weights / weights.sum()
        if scipy.sparse.issparse(features):
            return cls(scale_csr(features, root, None), proportion @ features, root)
        mean = proportion.astype(features.dtype) @ features
        rows = features - mean
        if np.any(root != 1.0):
            rows *= root[:, None].astype(rows.dtype)
        return cls(rows, mean, root)

    @property
    def is_sparse(self) -> bool:
        """Whether the rows are sparse, and centred only implicitly."""
        return bool(scipy.sparse.issparse(self.rows))

    def kernel(self, prior: Array | None = None) -> NDArray[np.float64]:
        """Return ``C @ diag(prior) @ C.T`` for the centred rows C, (n_samples, n_samples).

        Examples
        --------
        >>> x = np.array([[1.0, 0.0], [3.0, 2.0]])
        >>> sparse = scipy.sparse.csr_array(x)
        >>> CentredRows.of(sparse, np.ones(2)).kernel().tolist()
        [[2.0, -2.0], [-2.0, 2.0]]
        """
        scale = None if prior is None else np.sqrt(prior)
        if not self.is_sparse:
            scaled = self.rows if scale is None else self.rows * scale.astype(self.rows.dtype)
            return np.asarray(scaled @ scaled.T).astype(np.float64)
        rows = scale_csr(self.rows, None, scale).astype(np.float64)
        mean = self.mean * (1.0 if scale is None else scale)
        with_mean = np.outer(rows @ mean, self.root)
        between_means = float(mean @ mean) * np.outer(self.root, self.root)
        return np.asarray((rows @ rows.T).toarray() - with_mean - with_mean.T + between_means)

    def columns(self, indices: Any) -> Array:
        """Return some features, dense and centred."""
        if not self.is_sparse:
            return np.asarray(self.rows[:, indices])
        return np.asarray(
            self.rows[:, indices].toarray() - np.outer(self.root, self.mean[indices]),
            dtype=np.float32,
        )


def take_rows(x: Any, rows: Array) -> Any:
    """Return some rows; of a dense array in column order, which sparse products need."""
    return x[rows] if scipy.sparse.issparse(x) else np.take(x.T, rows, axis=1).T


def scale_csr(x: Any, by_row: Array | None, by_column: Array | None) -> Any:
    """Return a float32 CSR array with its rows and columns multiplied by factors.

    Examples
    --------
    >>> x = scipy.sparse.csr_array([[1.0, 0.0], [2.0, 3.0]])
    >>> scale_csr(x, np.array([1.0, 2.0]), np.array([10.0, 1.0])).toarray().tolist()
    [[10.0, 0.0], [40.0, 6.0]]
    """
    data = x.data.astype(np.float64)
    if by_row is not None:
        data *= np.repeat(by_row, np.diff(x.indptr))
    if by_column is not None:
        data *= by_column[x.indices]
    return scipy.sparse.csr_array((data.astype(np.float32), x.indices, x.indptr), shape=x.shape)
