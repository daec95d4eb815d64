"""Recent gradients of a layer, remembered as two thin matrices instead of a dense one.

The gradient of a minibatch is the product of its activations and errors; momentum, the sum of past
gradients that fade by a factor ``mu`` per step, is the product of the same matrices side by side,
each minibatch scaled by its age.  Minibatches that have faded below one per cent are forgotten.

Where that would still be too many columns, the product is brought to lower rank: its largest
singular values stay, half as many as columns are allowed, and the rest is lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from ratoon.arrays import Array
from ratoon.evolution.base import Signals, State

FORGOTTEN = 0.01


def n_remembered(mu: float) -> int:
    """Return after how many steps a gradient has faded below one per cent.

    Examples
    --------
    >>> n_remembered(0.9)
    44
    """
    return 1 if mu <= 0.0 else max(1, math.ceil(math.log(FORGOTTEN) / math.log(mu)))


@dataclass(frozen=True, eq=False)
class RecentGradients:
    """Factors whose product is the faded sum of recent gradients.

    Parameters
    ----------
    x, d : ndarray
        One row per input and one per output; column c of both belongs to one sample.  Fading is
        in ``x``.
    born : ndarray of int64
        The step each column was seen at.
    """

    x: Array
    d: Array
    born: NDArray[np.int64]

    @classmethod
    def none(cls, shape: tuple[int, int], dtype: Any) -> RecentGradients:
        """Nothing seen yet."""
        empty = np.empty(0, dtype=np.int64)
        return cls(np.empty((shape[0], 0), dtype), np.empty((shape[1], 0), dtype), empty)

    @classmethod
    def read(cls, state: State, name: str) -> RecentGradients:
        """Take them out of a strategy's state."""
        return cls(state[f"{name}.x"], state[f"{name}.d"], state[f"{name}.born"])

    def written(self, name: str) -> State:
        """Return them as part of a strategy's state."""
        return {f"{name}.x": self.x, f"{name}.d": self.d, f"{name}.born": self.born}

    @property
    def factors(self) -> Signals:
        """The two thin matrices."""
        return self.x, self.d

    def seen(
        self, signals: Signals, step: int, *, mu: float, max_columns: int | None
    ) -> RecentGradients:
        """Return what is remembered once a minibatch has been added.

        Examples
        --------
        >>> recent = RecentGradients.none((1, 1), np.float64)
        >>> one = np.ones((1, 1))
        >>> for step in range(3):
        ...     recent = recent.seen((one, one), step, mu=0.5, max_columns=None)
        >>> recent.x @ recent.d.T
        array([[1.75]])
        """
        old = self._faded_to(step, mu)
        both = RecentGradients(
            np.concatenate((old.x, signals[0]), axis=1),
            np.concatenate((old.d, signals[1]), axis=1),
            np.concatenate((old.born, np.full(signals[0].shape[1], step))),
        )
        if max_columns is None or both.born.size <= max_columns:
            return both
        return both.of_rank(max_columns // 2, step)

    def _faded_to(self, step: int, mu: float) -> RecentGradients:
        if self.born.size == 0:
            return self
        fresh = self.born > step - n_remembered(mu)
        fading = mu ** float(step - self.born.max())
        if fresh.all():
            return RecentGradients(self.x * self.x.dtype.type(fading), self.d, self.born)
        x = self.x[:, fresh] * self.x.dtype.type(fading)
        return RecentGradients(x, self.d[:, fresh], self.born[fresh])

    def of_rank(self, rank: int, step: int) -> RecentGradients:
        """Return the nearest product with at most ``rank`` columns.

        Only matrices as small as the number of columns are decomposed: those of scalar products
        between columns.  On one BLAS thread: more would cost more than they bring, on a busy
        machine thirty times more, and the result would depend on how many there are.
        """
        with _blas().limit(limits=1, user_api="blas"):
            return self._of_rank(rank, step)

    def _of_rank(self, rank: int, step: int) -> RecentGradients:
        roots = [_root_of_gram(rows) for rows in self.factors]
        (root_x, inverse_x), (root_d, inverse_d) = roots
        left, values, right = np.linalg.svd(root_x @ root_d.T)
        rank = min(rank, values.size)
        scale = np.sqrt(values[:rank])
        to_x = (inverse_x @ left[:, :rank] * scale).astype(self.x.dtype)
        to_d = (inverse_d @ right[:rank].T * scale).astype(self.d.dtype)
        return RecentGradients(self.x @ to_x, self.d @ to_d, np.full(rank, step))


@cache
def _blas() -> ThreadpoolController:
    # To look for the libraries that are loaded takes a millisecond, too long for every step.
    return ThreadpoolController()


def _root_of_gram(rows: Array) -> tuple[Array, Array]:
    """Return R with R.T @ R = rows.T @ rows, and its pseudo-inverse."""
    gram = np.zeros((rows.shape[1], rows.shape[1]))
    for first in range(0, rows.shape[0], 1 << 13):
        block = rows[first : first + (1 << 13)].astype(np.float64)
        gram += block.T @ block
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0.0)
    used = values > values.max(initial=0.0) * 1e-12
    roots = np.sqrt(values)
    inverses = np.divide(1.0, roots, out=np.zeros_like(roots), where=used)
    return roots[:, None] * vectors.T, vectors * inverses
