"""`Samples`: checked rows of features in any storage.

There are three kinds: dense in memory, sparse in memory, and on disk.  Code that trains or predicts
uses what they have in common and does not ask which kind it has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ratoon.arrays import Array

Rows = NDArray[np.int64]


class Samples(ABC):
    """Rows of features that were checked and can be trained on or predicted.

    An index selects rows and gives samples of the same kind.
    """

    ndim = 2
    is_sparse = False
    """Whether only some values are stored and the others are 0."""
    is_on_disk = False
    """Whether the rows have to be read before they can be used."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and features."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """Number type of the values."""

    @abstractmethod
    def __getitem__(self, rows: slice | Array) -> Samples:
        """Return some of the rows."""

    @abstractmethod
    def values(self, dtype: DTypeLike | None = None) -> Any:
        """Return all values as an array, or as a CSR array if sparse; copied only if necessary."""

    @abstractmethod
    def dense(self, rows: slice | Array = slice(None)) -> Array:
        """Return some of the rows, by default all, as a dense array."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.shape[1]

    @property
    def n_stored(self) -> int | None:
        """Number of stored values of sparse samples; None for others."""
        return None

    def __len__(self) -> int:
        return self.n_rows

    def check(self) -> None:
        """Raise if a value that has not been read yet is missing or infinite."""
        return  # values in memory were checked before
