"""Samples less their mean: dense ones truly, sparse ones in thought, so that zeros stay zeros.

Ridge needs features with mean 0.  Subtracting the mean would fill a sparse matrix, and is not
necessary: products of centred rows follow from products of the rows as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ratoon.arrays import Array


@dataclass(frozen=True, eq=False)
class Centred:
    """Features less their mean, each row times the root of its weight.

    Parameters
    ----------
    rows : ndarray or CSR array (samples, features), float32
        Centred if dense; if sparse, times the root of the weights only.
    centre : ndarray
        The weighted mean of every feature.
    root : ndarray
        Roots of the weights, whose mean is 1.
    """

    rows: Any
    centre: Array
    root: Array

    @classmethod
    def of(cls, features: Any, weights: Array) -> Centred:
        """Centre dense or sparse features.

        Examples
        --------
        >>> x = np.array([[1.0, 0.0], [3.0, 0.0]])
        >>> Centred.of(x, np.ones(2)).rows.tolist()
        [[-1.0, 0.0], [1.0, 0.0]]
        >>> Centred.of(scipy.sparse.csr_array(x), np.ones(2)).columns([0]).tolist()
        [[-1.0], [1.0]]
        """
        weights = weights / weights.mean()
        root = np.sqrt(weights)
        if scipy.sparse.issparse(features):
            centre = ((weights / weights.sum()) @ features).astype(np.float32)
            return cls(scaled(features, root, None), centre, root)
        centre = np.average(features, axis=0, weights=weights).astype(np.float32)
        return cls(((features - centre) * root[:, None]).astype(np.float32), centre, root)

    @property
    def is_sparse(self) -> bool:
        """Whether rows are centred in thought only."""
        return bool(scipy.sparse.issparse(self.rows))

    def weighed(self, prior: Array) -> Any:
        """Return the rows with every feature times its prior variance."""
        if self.is_sparse:
            return scaled(self.rows, None, prior)
        return self.rows * prior.astype(np.float32)

    def kernel(self, prior: Array | None = None) -> NDArray[np.float64]:
        """Return products of all pairs of centred rows, (samples, samples).

        Examples
        --------
        >>> x = np.array([[1.0, 0.0], [3.0, 2.0]])
        >>> sparse = scipy.sparse.csr_array(x)
        >>> Centred.of(sparse, np.ones(2)).kernel().tolist()
        [[2.0, -2.0], [-2.0, 2.0]]
        """
        weighed = self.rows if prior is None else self.weighed(prior)
        if not self.is_sparse:
            return np.asarray(weighed @ self.rows.T).astype(np.float64)
        tilted = self.centre.astype(np.float64) * (1.0 if prior is None else prior)
        plain = (weighed.astype(np.float64) @ self.rows.T.astype(np.float64)).toarray()
        with_mean = np.outer(self.rows @ tilted, self.root)
        between_means = float(self.centre @ tilted) * np.outer(self.root, self.root)
        return np.asarray(plain - with_mean - with_mean.T + between_means)

    def columns(self, chosen: Any) -> Array:
        """Return some features, dense and centred."""
        if not self.is_sparse:
            return np.asarray(self.rows[:, chosen])
        return np.asarray(
            self.rows[:, chosen].toarray() - np.outer(self.root, self.centre[chosen]),
            dtype=np.float32,
        )


def scaled(x: Any, by_row: Array | None, by_column: Array | None) -> Any:
    """Return a CSR array whose rows and columns are multiplied by factors; zeros stay zeros.

    Examples
    --------
    >>> x = scipy.sparse.csr_array([[1.0, 0.0], [2.0, 3.0]])
    >>> scaled(x, np.array([1.0, 2.0]), np.array([10.0, 1.0])).toarray().tolist()
    [[10.0, 0.0], [40.0, 6.0]]
    """
    data = x.data.astype(np.float64)
    if by_row is not None:
        data *= np.repeat(by_row, np.diff(x.indptr))
    if by_column is not None:
        data *= by_column[x.indices]
    return scipy.sparse.csr_array((data.astype(np.float32), x.indices, x.indptr), shape=x.shape)
