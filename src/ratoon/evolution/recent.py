"""Recent gradients of a layer, stored as two thin matrices instead of a dense one.

The gradient of a minibatch is the product of its activations and errors.  Momentum is the sum of
past gradients, which decay by a factor ``mu`` per step.  It is the product of the activations and
errors of several minibatches, concatenated and scaled by age.  Minibatches that have decayed below
one per cent are dropped.

If there are still too many columns, the product is approximated at a lower rank: the largest
singular values are kept, half as many as there may be columns.  This approximation is the best of
its rank if the columns, the inputs or the outputs are at most `MANY_COLUMNS`.  Otherwise random
projections find one that is almost as good, in time and memory that grow with the factors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from ratoon.arrays import Array
from ratoon.evolution.base import Signals, State

NEGLIGIBLE = 0.01
MANY_COLUMNS = 512
"""More columns than this are reduced by way of the inputs or outputs, or by random projections."""

N_PASSES = 3
"""Passes over the factors with which random projections are refined."""

_SMALL, _LARGE = 1e-70, 1e70
"""Magnitudes between which no power that is computed here overflows or vanishes."""


def n_remembered(mu: float) -> int:
    """Return the number of steps after which a gradient has decayed below one per cent.

    Examples
    --------
    >>> n_remembered(0.9)
    44
    """
    return 1 if mu <= 0.0 else max(1, math.ceil(math.log(NEGLIGIBLE) / math.log(mu)))


@dataclass(frozen=True, eq=False)
class RecentGradients:
    """Factors whose product is the decayed sum of recent gradients.

    Parameters
    ----------
    x, d : ndarray
        One row per input and one per output; column c of both belongs to one sample.  The decay
        is applied to ``x``.
    steps : ndarray of int64
        The step of each column's minibatch.
    """

    x: Array
    d: Array
    steps: NDArray[np.int64]

    @classmethod
    def empty(cls, shape: tuple[int, int], dtype: Any) -> RecentGradients:
        """Return factors without columns."""
        steps = np.empty(0, dtype=np.int64)
        return cls(np.empty((shape[0], 0), dtype), np.empty((shape[1], 0), dtype), steps)

    @classmethod
    def from_state(cls, state: State, name: str) -> RecentGradients:
        """Return the factors that a strategy's state holds under a name."""
        return cls(state[f"{name}.x"], state[f"{name}.d"], state[f"{name}.born"])

    def to_state(self, name: str) -> State:
        """Return the factors as entries of a strategy's state."""
        # "born" is the name of the steps in files written by earlier versions.
        return {f"{name}.x": self.x, f"{name}.d": self.d, f"{name}.born": self.steps}

    @property
    def factors(self) -> Signals:
        """The two thin matrices."""
        return self.x, self.d

    def with_minibatch(
        self, signals: Signals, step: int, *, mu: float, max_columns: int | None
    ) -> RecentGradients:
        """Return the factors after one more minibatch.

        A minibatch whose activations or errors are not finite is left out, for example one of
        mixed-precision training whose step is skipped.

        Examples
        --------
        >>> recent = RecentGradients.empty((1, 1), np.float64)
        >>> one = np.ones((1, 1))
        >>> for step in range(3):
        ...     recent = recent.with_minibatch((one, one), step, mu=0.5, max_columns=None)
        >>> recent.x @ recent.d.T
        array([[1.75]])
        """
        if not all(np.isfinite(rows).all() for rows in signals):
            return self
        old = self._decayed_to(step, mu)
        both = RecentGradients(
            np.concatenate((old.x, signals[0]), axis=1),
            np.concatenate((old.d, signals[1]), axis=1),
            np.concatenate((old.steps, np.full(signals[0].shape[1], step))),
        )
        if max_columns is None or both.steps.size <= max_columns:
            return both
        return both.of_rank(max_columns // 2, step)

    def _decayed_to(self, step: int, mu: float) -> RecentGradients:
        if self.steps.size == 0:
            return self
        is_recent = self.steps > step - n_remembered(mu)
        decay = mu ** float(step - self.steps.max())
        if is_recent.all():
            return RecentGradients(self.x * self.x.dtype.type(decay), self.d, self.steps)
        x = self.x[:, is_recent] * self.x.dtype.type(decay)
        return RecentGradients(x, self.d[:, is_recent], self.steps[is_recent])

    def of_rank(self, rank: int, step: int) -> RecentGradients:
        """Return the best approximation with at most ``rank`` columns.

        Only the Gram matrices of the columns are decomposed, which are as small as the number of
        columns.  Where there are many columns, for example one per token, and the layer has few
        inputs or outputs, a Gram matrix of these is decomposed instead.  Where all are many, the
        product is projected on random vectors.

        This uses one BLAS thread: more threads are slower on matrices of this size (up to thirty
        times on a busy machine), and the result would depend on their number.
        """
        with _blas().limit(limits=1, user_api="blas"):
            largest = [float(np.abs(rows).max(initial=0.0)) for rows in self.factors]
            n_least = min(self.x.shape[0], self.d.shape[0], self.steps.size)
            is_wide = n_least > max(MANY_COLUMNS, 4 * rank)
            if not is_wide and all(_SMALL < size < _LARGE or size == 0.0 for size in largest):
                return self._of_rank_exactly(rank, step)
            # Powers of two scale exactly, and no square or sum overflows afterwards.
            units = [2.0 ** math.floor(math.log2(size)) if size else 1.0 for size in largest]
            parts = (self.x / self.x.dtype.type(units[0]), self.d / self.d.dtype.type(units[1]))
            scaled = RecentGradients(*parts, self.steps)
            reduce = scaled._of_rank_by_projection if is_wide else scaled._of_rank_exactly
            low, unit = reduce(rank, step), math.sqrt(units[0]) * math.sqrt(units[1])
            x, d = ((rows * unit).astype(self.x.dtype) for rows in low.factors)
            return RecentGradients(x, d, low.steps)

    def _of_rank_exactly(self, rank: int, step: int) -> RecentGradients:
        narrow = min(self.x.shape[0], self.d.shape[0])
        if self.steps.size > MANY_COLUMNS and narrow < self.steps.size:
            return self._of_rank_by_units(min(rank, narrow), step)
        return self._of_rank(rank, step)

    def _of_rank_by_projection(self, rank: int, step: int) -> RecentGradients:
        """Approximate the largest singular vectors by subspace iteration from random vectors.

        The method is that of Halko, Martinsson and Tropp (SIAM Review 53, 2011).  All arrays are
        as narrow as about twice the rank.
        """
        rng = np.random.default_rng(0)
        rows = rng.standard_normal((self.d.shape[0], 2 * rank + 8)).astype(self.d.dtype)
        for _ in range(N_PASSES):
            basis = _orthonormal(self.x @ (self.d.T @ _orthonormal(rows)))
            rows = self.d @ (self.x.T @ basis)  # the product is about basis @ rows.T
        vectors, values, right = singular_values(rows.astype(np.float64))
        scale = np.sqrt(values[:rank])
        return RecentGradients(
            basis @ right[:rank].T * scale, vectors[:, :rank] * scale, np.full(rank, step)
        )

    def _of_rank_by_units(self, rank: int, step: int) -> RecentGradients:
        """Project the product on its largest singular vectors in the smaller dimension."""
        is_x = self.x.shape[0] <= self.d.shape[0]
        short, long = self.factors if is_x else self.factors[::-1]
        # Smaller than the wider factor, as it has fewer rows than that has columns.
        product = np.zeros((short.shape[0], long.shape[0]))
        for first in range(0, self.steps.size, MANY_COLUMNS):
            part = slice(first, first + MANY_COLUMNS)
            product += short[:, part].astype(np.float64) @ long[:, part].T.astype(np.float64)
        n = short.shape[0]
        _, vectors = scipy.linalg.eigh(product @ product.T, subset_by_index=(n - rank, n - 1))
        vectors = vectors[:, ::-1]
        projected = product.T @ vectors
        scale = np.sqrt(np.linalg.norm(projected, axis=0))
        projected = np.divide(projected, scale, out=np.zeros_like(projected), where=scale > 0.0)
        dtype = self.x.dtype
        parts = (vectors * scale).astype(dtype), projected.astype(dtype)
        x, d = parts if is_x else parts[::-1]
        return RecentGradients(x, d, np.full(rank, step))

    def _of_rank(self, rank: int, step: int) -> RecentGradients:
        roots = [_root_of_gram(rows) for rows in self.factors]
        (root_x, inverse_x), (root_d, inverse_d) = roots
        left, values, right = singular_values(root_x @ root_d.T)
        rank = min(rank, values.size)
        scale = np.sqrt(values[:rank])
        to_x = (inverse_x @ left[:, :rank] * scale).astype(self.x.dtype)
        to_d = (inverse_d @ right[:rank].T * scale).astype(self.d.dtype)
        return RecentGradients(self.x @ to_x, self.d @ to_d, np.full(rank, step))


def singular_values(matrix: Array) -> tuple[Array, Array, Array]:
    """Return left vectors, singular values and right vectors, also where LAPACK's gesdd fails.

    It fails to converge for a few finite matrices, for which the slower gesvd converges.

    Examples
    --------
    >>> singular_values(np.diag([3.0, 2.0]))[1].tolist()
    [3.0, 2.0]
    """
    try:
        return np.linalg.svd(matrix, full_matrices=False)
    except np.linalg.LinAlgError:
        left, values, right = scipy.linalg.svd(matrix, full_matrices=False, lapack_driver="gesvd")
        return left, values, right


def _orthonormal(columns: Array) -> Array:
    return np.linalg.qr(columns.astype(np.float64))[0].astype(columns.dtype)


@cache
def _blas() -> ThreadpoolController:
    # Finding the loaded libraries takes a millisecond, too long for every step.
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
