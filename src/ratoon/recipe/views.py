"""How features are read: clipped z-scores; for texts, of rows that are standardised first."""

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
    """Mean and spread of every feature over the training rows.

    ``by_row`` first standardises each sample over its own features, so that a long text and a
    short one with the same words look the same.
    """

    mean: Array
    spread: Array  # 0 where a feature is constant
    by_row: bool

    @classmethod
    def of(cls, x: Array, weights: Array, *, by_row: bool) -> View:
        """Learn from training rows."""
        rows = standardised_rows(x) if by_row else x
        share = (weights / weights.sum()).astype(np.float64)
        mean = share @ rows
        variance = share @ np.square(rows - mean.astype(rows.dtype), dtype=np.float64)
        spread = np.sqrt(variance)
        is_constant = spread <= 1e-6 * np.maximum(1.0, np.abs(mean))
        return cls(mean, np.where(is_constant, 0.0, spread), by_row)

    @property
    def scaling(self) -> Scaling:
        """The same as networks apply it, after `standardised_rows` where that is asked for."""
        factors = np.divide(1.0, self.spread, out=np.zeros_like(self.spread), where=self.spread > 0)
        return Scaling(self.mean, factors, CLIP)

    def read(self, x: Array) -> Array:
        """Return clipped z-scores as float32."""
        rows = standardised_rows(x) if self.by_row else x
        scaling = self.scaling
        assert scaling.scale is not None
        z = (rows - self.mean.astype(np.float32)) * scaling.scale.astype(np.float32)
        return np.asarray(np.clip(z, -CLIP, CLIP), dtype=np.float32)


def standardised_rows(x: Array) -> Array:
    """Give every row mean 0 and standard deviation 1 over its features."""
    centred = x - x.mean(axis=1, keepdims=True)
    return np.asarray(centred / (centred.std(axis=1, keepdims=True) + 1e-12))


def looks_like_text(x: Array) -> bool:
    """Whether features are counts of rare things: never negative, and mostly 0.

    Examples
    --------
    >>> looks_like_text(np.eye(10)), looks_like_text(np.ones((3, 3)))
    (True, False)
    """
    return bool(x.min() >= 0 and np.count_nonzero(x) <= 0.2 * x.size)
