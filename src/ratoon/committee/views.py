"""How features are read: as z-scores of the training rows, clipped.

Those of a sparse matrix are not centred, so that zeros stay zeros; whoever needs them centred does
that in thought (`ratoon.committee.centred`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.committee.centred import scaled
from ratoon.kernels import Scaling
from ratoon.samples.statistics import feature_statistics

CLIP = 3.0


@dataclass(frozen=True, eq=False)
class View:
    """Mean and spread of every feature over the training rows; no target is looked at."""

    mean: Array
    spread: Array  # 0 where a feature is constant
    centres: bool = True

    @classmethod
    def of(cls, x: Any, weights: Array) -> View:
        """Learn from training rows."""
        if scipy.sparse.issparse(x):
            found = feature_statistics(x, weights)
            return cls(found.mean, found.std, centres=False)
        share = (weights / weights.sum()).astype(np.float64)
        mean = share @ x
        spread = np.sqrt(share @ np.square(x - mean.astype(x.dtype), dtype=np.float64))
        is_constant = spread <= 1e-6 * np.maximum(1.0, np.abs(mean))
        return cls(mean, np.where(is_constant, 0.0, spread))

    @property
    def scaling(self) -> Scaling:
        """The same, as a network applies it."""
        factors = np.divide(1.0, self.spread, out=np.zeros_like(self.spread), where=self.spread > 0)
        return Scaling(self.mean if self.centres else None, factors, CLIP)

    @property
    def origin(self) -> NDArray[np.float64] | None:
        """What was not subtracted: where the mean of every feature lies; None where it is 0."""
        return None if self.centres else self.mean * self.scaling.scale

    def read(self, x: Any) -> Any:
        """Return clipped z-scores as float32, sparse if x is.

        Examples
        --------
        >>> x = np.array([[0.0, 5.0], [2.0, 5.0]], dtype=np.float32)
        >>> View.of(x, np.ones(2)).read(x).tolist()
        [[-1.0, 0.0], [1.0, 0.0]]
        """
        factors = np.asarray(self.scaling.scale, dtype=np.float32)
        if scipy.sparse.issparse(x):
            z = scaled(x, None, factors)
            np.clip(z.data, -CLIP, CLIP, out=z.data)
            return z
        z = (x - self.mean.astype(np.float32)) * factors
        return np.asarray(np.clip(z, -CLIP, CLIP), dtype=np.float32)
