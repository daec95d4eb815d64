"""Samples with their targets and weights, and the ways they are split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.samples.on_disk import DiskRows, MapReader

Rows = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Labelled:
    """Samples (dense, or a CSR matrix), one target each, and optionally weights; all checked."""

    x: Any
    y: Array
    weights: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if self.y.shape[0] != self.x.shape[0]:
            raise InvalidInputError(
                f"Found input variables with inconsistent numbers of samples: X has"
                f" {self.x.shape[0]}, y has {self.y.shape[0]}."
            )

    @property
    def n_samples(self) -> int:
        """How many samples there are."""
        return int(self.x.shape[0])

    def take(self, rows: Rows) -> Labelled:
        """Return some of the samples, copied; those on disk stay there."""
        weights = None if self.weights is None else self.weights[rows]
        x = DiskRows(MapReader(self.x)) if _is_mapped(self.x) else self.x
        return Labelled(x[rows], self.y[rows], weights)

    def weights_without(self, held: Rows | None) -> NDArray[np.float64] | None:
        """Return the weights with 0 for the rows that are held back."""
        if held is None:
            return self.weights
        weights = np.ones(self.n_samples) if self.weights is None else self.weights.copy()
        weights[held] = 0.0
        return weights


def _is_mapped(x: Any) -> bool:
    return isinstance(x, np.ndarray) and any(isinstance(a, np.memmap) for a in (x, x.base))


def parts_of_eval_set(eval_set: Any) -> tuple[Any, Any, Any]:
    """Return samples, targets and weights or None.

    Examples
    --------
    >>> parts_of_eval_set([([[1.0]], [0])])
    ([[1.0]], [0], None)
    >>> parts_of_eval_set([[1.0]])
    Traceback (most recent call last):
    ...
    ratoon.errors.InvalidInputError: `eval_set` must be a tuple (X, y) or (X, y, sample_weight) of
    validation data.
    """
    if isinstance(eval_set, list) and len(eval_set) == 1:
        eval_set = eval_set[0]  # as gradient boosting libraries have it
    if not isinstance(eval_set, tuple | list) or len(eval_set) not in (2, 3):
        raise InvalidInputError(
            "`eval_set` must be a tuple (X, y) or (X, y, sample_weight) of validation data."
        )
    return eval_set[0], eval_set[1], eval_set[2] if len(eval_set) == 3 else None


def hold_out(
    n_samples: int, fraction: float, generator: np.random.Generator, codes: Array | None = None
) -> Rows:
    """Choose rows to hold back, ascending: at least 1, never all.

    Parameters
    ----------
    n_samples : int
        How many there are.
    fraction : float
        How much of them to hold back.
    generator : numpy.random.Generator
        Decides which.
    codes : ndarray of int, optional
        Class of every sample.  All classes then give in equal shares, and none its only sample.

    Examples
    --------
    >>> codes = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2])
    >>> held = hold_out(9, 0.25, np.random.default_rng(0), codes)
    >>> codes[held].tolist()
    [0, 1]
    """
    if n_samples < 2:
        raise InvalidInputError(
            "early stopping holds samples back for validation, and there is only 1 sample.\n"
            "  Give validation data as `eval_set`, or set `early_stopping=False`."
        )
    n_held = min(max(1, round(fraction * n_samples)), n_samples - 1)
    mixed = generator.permutation(n_samples)
    if codes is None:
        return np.sort(mixed[:n_held])
    by_class = mixed[np.argsort(codes[mixed], kind="stable")]
    counts = np.bincount(codes)
    # How far into its class each sample stands: the least first takes equal shares of all.
    standing = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
    standing[np.repeat(counts, counts) == 1] = np.inf
    chosen = np.argsort(standing, kind="stable")[:n_held]
    return np.sort(by_class[chosen[np.isfinite(standing[chosen])]])
