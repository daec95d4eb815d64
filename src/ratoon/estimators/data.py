"""Samples with their targets and weights, and how a part of them is held out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.preparation import Preparation
from ratoon.samples.base import Rows, Samples
from ratoon.samples.groups import group_codes
from ratoon.samples.prepared import prepared


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of every sample.

    Parameters
    ----------
    codes : ndarray of int64
        Number of the group of every sample.
    names : tuple of str
        Names of the groups.
    column : str
        Column of a file that they are from; empty if unknown.
    """

    codes: NDArray[np.int64]
    names: tuple[str, ...]
    column: str = ""

    def take(self, rows: Rows) -> Groups:
        """Return the groups of some samples."""
        return replace(self, codes=self.codes[rows])

    @property
    def of_samples(self) -> list[str]:
        """The name of the group of every sample."""
        return [self.names[code] for code in self.codes]


@dataclass(frozen=True, eq=False)
class Labelled:
    """Checked samples with one target each, and optionally weights."""

    x: Samples
    y: Array
    weights: NDArray[np.float64] | None = None
    groups: Groups | None = None

    def __post_init__(self) -> None:
        if self.y.shape[0] != self.x.n_rows:
            raise InvalidInputError(
                f"Found input variables with inconsistent numbers of samples: X has"
                f" {self.x.n_rows}, y has {self.y.shape[0]}."
            )

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.x.n_rows

    def take(self, rows: Rows) -> Labelled:
        """Return some of the samples; they are copied unless they are on disk."""
        weights = None if self.weights is None else self.weights[rows]
        groups = None if self.groups is None else self.groups.take(rows)
        return Labelled(self.x[rows], self.y[rows], weights, groups)

    def prepared(self, preparation: Preparation | None) -> Labelled:
        """Return the samples after a preparation."""
        if preparation is None:
            return self
        groups = None if self.groups is None else self.groups.of_samples
        return replace(self, x=prepared(self.x, preparation, groups))

    def weights_without(self, held: Rows | None) -> NDArray[np.float64] | None:
        """Return the weights with 0 for the rows that are held out."""
        if held is None:
            return self.weights
        weights = np.ones(self.n_samples) if self.weights is None else self.weights.copy()
        weights[held] = 0.0
        return weights


def groups_of(X: Any, groups: Any) -> tuple[str, ...] | None:
    """Return the group of every sample as text: those given, or those of a data set."""
    found = getattr(X, "groups", None) if groups is None and hasattr(X, "group_column") else groups
    return None if found is None else tuple(map(str, np.asarray(found).tolist()))


def with_groups(labelled: Labelled, X: Any, groups: Any) -> Labelled:
    """Return samples with their groups: those given, or those of a data set."""
    column = ""
    if groups is None and hasattr(X, "group_column"):
        groups, column = X.groups, X.group_column
    if groups is None:
        return labelled
    return replace(labelled, groups=Groups(*group_codes(groups, labelled.n_samples), column))


def parts_of_eval_set(eval_set: Any) -> tuple[Any, Any, Any]:
    """Return the samples, targets and weights (or None) of an ``eval_set``.

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
        eval_set = eval_set[0]  # the form of gradient boosting libraries
    if not isinstance(eval_set, tuple | list) or len(eval_set) not in (2, 3):
        raise InvalidInputError(
            "`eval_set` must be a tuple (X, y) or (X, y, sample_weight) of validation data."
        )
    return eval_set[0], eval_set[1], eval_set[2] if len(eval_set) == 3 else None


def hold_out(
    n_samples: int, fraction: float, generator: np.random.Generator, codes: Array | None = None
) -> Rows:
    """Return the rows to hold out, in ascending order: at least 1, never all.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    fraction : float
        Fraction of the samples to hold out.
    generator : numpy.random.Generator
        Selects the rows.
    codes : ndarray of int, optional
        Class of every sample.  The split is then stratified, and the only sample of a class is
        never held out.

    Examples
    --------
    >>> codes = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2])
    >>> held = hold_out(9, 0.25, np.random.default_rng(0), codes)
    >>> codes[held].tolist()
    [0, 1]
    """
    if n_samples < 2:
        raise InvalidInputError(
            "early stopping holds out samples for validation, and there is only 1 sample.\n"
            "  Give validation data as `eval_set`, or set `early_stopping=False`."
        )
    n_held = min(max(1, round(fraction * n_samples)), n_samples - 1)
    shuffled = generator.permutation(n_samples)
    if codes is None:
        return np.sort(shuffled[:n_held])
    by_class = shuffled[np.argsort(codes[shuffled], kind="stable")]
    counts = np.bincount(codes)
    # Relative position of each sample in its class; the lowest take the same fraction of all.
    position = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
    position[np.repeat(counts, counts) == 1] = np.inf
    chosen = np.argsort(position, kind="stable")[:n_held]
    return np.sort(by_class[chosen[np.isfinite(position[chosen])]])
