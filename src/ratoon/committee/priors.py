"""How strongly a feature is tied to the target, by itself and together with another."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ratoon.arrays import Array

_SMALLEST, _LARGEST = 1e-6, 1e4
# Features at a time whose products with all others are looked at: keeps memory at 32 MB per 4,000.
_PAIRS_AT_ONCE = 1024


def f_statistic(z: Any, targets: Array, weights: Array) -> NDArray[np.float64]:
    """Return the F statistic of every feature, dense or sparse, against all targets together.

    For classes, given as one column each, this is the F of a one-way analysis of variance; for a
    continuous target that of the linear regression.  Limited to [1e-6, 1e4], so that a feature
    that separates the training rows perfectly counts much but not all.

    Examples
    --------
    >>> z = np.array([[0.0, 1.0], [0.1, -1.0], [5.0, 1.0], [5.1, -1.0]])
    >>> y = np.array([[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, 1.0]])
    >>> f_statistic(z, y, np.ones(4)).tolist()
    [5000.0, 1e-06]
    """
    total = float(weights.sum())
    root = np.sqrt(weights)[:, None]
    basis = _orthonormal((targets - np.average(targets, axis=0, weights=weights)) * root)
    degrees = basis.shape[1]
    if scipy.sparse.issparse(z):
        # The basis has no part along the mean, so nothing needs to be subtracted there.
        explained = np.square((basis * root).T @ z.astype(np.float64)).sum(axis=0)
        mean = (weights / total) @ z.astype(np.float64)
        everything = np.maximum(weights @ z.astype(np.float64).power(2) - total * mean**2, 0.0)
    else:
        centred = (z - np.average(z, axis=0, weights=weights)) * root
        explained = np.square(basis.T.astype(z.dtype) @ centred).sum(axis=0).astype(np.float64)
        everything = np.square(centred).sum(axis=0).astype(np.float64)
    left = np.maximum(everything - explained, 0.0)
    per_degree = left / max(total - degrees - 1, 1.0)
    f = (explained / max(degrees, 1)) / np.maximum(per_degree, 1e-9)
    return np.clip(np.where(explained <= 1e-9, 0.0, f), _SMALLEST, _LARGEST)


def _orthonormal(columns: Array) -> Array:
    """Return an orthonormal basis of what the columns span."""
    vectors, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    kept = sizes > 1e-9 * max(float(sizes.max(initial=0.0)), 1e-300)
    return np.asarray(vectors[:, kept])


def pair_strength(z: Array, targets: Array, weights: Array) -> NDArray[np.float64]:
    """Return for every feature how strongly its products with other features tell the target.

    A feature that says nothing alone may say much together with another, as in an exclusive or.
    For each pair the squared t of the correlation between target and product is compared with
    the level that the best of so many pairs reaches by chance, and what exceeds it is summed over
    the partners.  0 means that nothing was found.  Takes features squared times samples operations.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = rng.choice([-1.0, 1.0], size=(200, 10))
    >>> y = z[:, [2]] * z[:, [7]]
    >>> np.flatnonzero(pair_strength(z, y, np.ones(200))).tolist()
    [2, 7]
    """
    total = float(weights.sum())
    share = weights[:, None] / total
    n_features = z.shape[1]
    z = z - (share * z).sum(axis=0)
    z = (z / np.maximum(np.sqrt((share * z * z).sum(axis=0)), 1e-9)).astype(np.float32)
    distinct = targets[:, :1] if targets.shape[1] == 2 else targets
    chance = 2.0 * np.log(max(n_features * (n_features - 1) / 2 * distinct.shape[1], 2.0))
    strength = np.zeros(n_features)
    weighted = (z * share).astype(np.float32)
    for first in range(0, n_features, _PAIRS_AT_ONCE):
        part = slice(first, min(first + _PAIRS_AT_ONCE, n_features))
        mean = weighted[:, part].T @ z
        spread = (weighted[:, part] * z[:, part]).T @ (z * z) - mean**2
        for column in distinct.T:
            u = column - float((share[:, 0] * column).sum())
            u = u / max(float(np.sqrt((share[:, 0] * u * u).sum())), 1e-12)
            together = (weighted[:, part] * u[:, None].astype(np.float32)).T @ z
            r2 = together**2 / np.maximum(spread, 0.05)
            t2 = total * r2 / np.maximum(1.0 - r2, 1e-3)
            rows = np.arange(part.stop - first)
            t2[rows, first + rows] = 0.0
            strength[part] += np.maximum(t2 - chance, 0.0).sum(axis=1)
    return strength
