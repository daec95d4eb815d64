"""Strength of features: how closely they are associated with the target, alone or in pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.committee.problem import CentredRows

_MIN_F, _MAX_F = 1e-6, 1e4
# Features per block of pairs: limits memory to about 30 MB per 4,000 features.
_BLOCK_SIZE = 512


def f_statistic(z: Any, targets: Array, weights: Array) -> NDArray[np.float64]:
    """Return the F statistic of every feature, dense or sparse, against all targets together.

    For one-hot classes this is the F of a one-way analysis of variance, for a continuous target
    that of linear regression.  It is limited to [1e-6, 1e4], so that a feature that separates the
    training samples perfectly dominates the others but does not exclude them.

    Examples
    --------
    >>> z = np.array([[0.0, 1.0], [0.1, -1.0], [5.0, 1.0], [5.1, -1.0]])
    >>> y = np.array([[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, 1.0]])
    >>> f_statistic(z, y, np.ones(4)).tolist()
    [5000.0, 1e-06]
    """
    return f_of_rows(CentredRows.of(z, weights), targets, weights)


def f_of_rows(x: CentredRows, targets: Array, weights: Array) -> NDArray[np.float64]:
    """Return `f_statistic` of features that are centred already."""
    centred_targets = targets - np.average(targets, axis=0, weights=weights)
    basis = _orthonormal_basis(centred_targets * x.root[:, None])
    # The basis is orthogonal to the mean, so products with sparse rows need no centring.
    explained = np.square(x.rows.T @ basis.astype(x.rows.dtype)).sum(axis=1, dtype=np.float64)
    if x.is_sparse:
        squares = x.rows.astype(np.float64).power(2).sum(axis=0)
        variation = np.maximum(squares - np.square(x.mean) * len(x.root), 0.0)
    else:
        variation = np.einsum("ij,ij->j", x.rows, x.rows).astype(np.float64)
    unexplained = np.maximum(variation - explained, 0.0)
    n_degrees = basis.shape[1]
    per_degree = unexplained / max(float(weights.sum()) - n_degrees - 1, 1.0)
    f = (explained / max(n_degrees, 1)) / np.maximum(per_degree, 1e-9)
    return np.clip(np.where(explained <= 1e-9, 0.0, f), _MIN_F, _MAX_F)


def _orthonormal_basis(columns: Array) -> Array:
    """Return an orthonormal basis of the column space."""
    vectors, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    kept = sizes > 1e-9 * max(float(sizes.max(initial=0.0)), 1e-300)
    return np.asarray(vectors[:, kept])


def pair_strength(z: Array, targets: Array, weights: Array) -> NDArray[np.float64]:
    """Return how strongly the products of every feature with other features predict the target.

    A feature without an effect alone may have one together with another, as in an exclusive
    or.  For each pair, let t be the t statistic of the correlation of target and product.  The
    maximum of t^2 over P pairs of independent noise is about 2 log P.  The strength of a feature is
    the sum of max(t^2 - 2 log P, 0) over its partners; 0 means that no pair was found.  Takes
    time proportional to the number of samples times the squared number of features.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = rng.choice([-1.0, 1.0], size=(200, 10))
    >>> y = z[:, [2]] * z[:, [7]]
    >>> np.flatnonzero(pair_strength(z, y, np.ones(200))).tolist()
    [2, 7]
    """
    total = float(weights.sum())
    proportion = weights[:, None] / total
    n_features = z.shape[1]
    z = z - (proportion * z).sum(axis=0)
    z = (z / np.maximum(np.sqrt((proportion * z * z).sum(axis=0)), 1e-9)).astype(np.float32)
    columns = targets[:, :1] if targets.shape[1] == 2 else targets
    threshold = 2.0 * np.log(max(n_features * (n_features - 1) / 2 * columns.shape[1], 2.0))
    strength = np.zeros(n_features)
    weighted = (z * proportion).astype(np.float32)
    for first in range(0, n_features, _BLOCK_SIZE):
        block, others = weighted[:, first : first + _BLOCK_SIZE], z[:, first:]
        mean = block.T @ others
        variance = (block * others[:, : block.shape[1]]).T @ (others * others) - mean**2
        variance = np.maximum(variance, 0.05)
        for column in columns.T:
            u = column - float((proportion[:, 0] * column).sum())
            u = u / max(float(np.sqrt((proportion[:, 0] * u * u).sum())), 1e-12)
            r2 = (block * u[:, None].astype(np.float32)).T @ others
            r2 = np.square(r2, out=r2)
            r2 /= variance
            t2 = total * r2 / np.maximum(1.0 - r2, 1e-3)
            t2 -= threshold
            # Pairs to the right of the diagonal; every other pair is one of these, or a feature.
            found = np.triu(np.maximum(t2, 0.0, out=t2), 1)
            strength[first : first + _BLOCK_SIZE] += found.sum(axis=1)
            strength[first:] += found.sum(axis=0)
    return strength
