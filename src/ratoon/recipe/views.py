"""How features are read: as z-scores of the training rows, clipped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.kernels import Scaling

Array = NDArray[Any]

CLIP = 3.0


@dataclass(frozen=True, eq=False)
class View:
    """Mean and spread of every feature over the training rows; no target is looked at."""

    mean: Array
    spread: Array  # 0 where a feature is constant

    @classmethod
    def of(cls, x: Array, weights: Array) -> View:
        """Learn from training rows."""
        share = (weights / weights.sum()).astype(np.float64)
        mean = share @ x
        spread = np.sqrt(share @ np.square(x - mean.astype(x.dtype), dtype=np.float64))
        is_constant = spread <= 1e-6 * np.maximum(1.0, np.abs(mean))
        return cls(mean, np.where(is_constant, 0.0, spread))

    @property
    def scaling(self) -> Scaling:
        """The same, as a network applies it."""
        factors = np.divide(1.0, self.spread, out=np.zeros_like(self.spread), where=self.spread > 0)
        return Scaling(self.mean, factors, CLIP)

    def read(self, x: Array) -> Array:
        """Return clipped z-scores as float32.

        Examples
        --------
        >>> x = np.array([[0.0, 5.0], [2.0, 5.0]], dtype=np.float32)
        >>> View.of(x, np.ones(2)).read(x).tolist()
        [[-1.0, 0.0], [1.0, 0.0]]
        """
        factors = np.asarray(self.scaling.scale, dtype=np.float32)
        z = (x - self.mean.astype(np.float32)) * factors
        return np.asarray(np.clip(z, -CLIP, CLIP), dtype=np.float32)
