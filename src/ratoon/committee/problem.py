"""What a committee is fitted to: features, targets, weights; and when one is worth fitting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array

MIN_SAMPLES, MAX_SAMPLES, MIN_FEATURES, MAX_ENTRIES = 20, 3000, 100, 100_000_000
MAX_SPARSE_FEATURES = 300_000
MANY_SAMPLES = 500
"""Above this many samples one validation split replaces repeated cross-validation."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Features (samples, features) as float32, targets (samples, outputs), sample weights.

    Features are a dense array or a CSR array, which stays sparse.

    ``groups`` holds the class of every sample where there are classes; strata follow them.
    ``kind`` says how raw outputs are read: "softmax", "sigmoid" or "squared".
    """

    x: Any
    targets: Array
    weights: Array
    groups: NDArray[np.int64] | None
    kind: str

    @property
    def n_samples(self) -> int:
        """How many samples there are."""
        return int(self.x.shape[0])

    @property
    def has_many_samples(self) -> bool:
        """Whether one validation split says enough."""
        return self.n_samples > MANY_SAMPLES

    def take(self, rows: NDArray[np.intp]) -> Problem:
        """Return the problem of some of the samples."""
        return Problem(
            self.x[rows],
            self.targets[rows],
            self.weights[rows],
            None if self.groups is None else self.groups[rows],
            self.kind,
        )


def suits(n_samples: int, n_features: int, n_stored: int | None = None) -> bool:
    """Whether data of this shape are for a committee; ``n_stored`` are the entries of a sparse X.

    Few samples and many features.  Elsewhere a network that is trained step by step has enough
    to learn from, or the matrices of samples by samples would grow too large.

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
