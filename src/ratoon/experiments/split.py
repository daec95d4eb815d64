"""Split samples into two parts or into folds, stratified by class where possible."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.samples.groups import group_codes, hold_out_groups


def split_rows(
    y: Array, fraction: float, seed: int, *, stratify: bool = True, groups: Any = None
) -> tuple[Array, Array]:
    """Split rows into two parts; the second has ``fraction`` of them, rounded up.

    Both parts have the same class proportions, unless ``stratify`` is false or there are too few
    samples.  Samples with the same value in ``groups`` are in the same part, and the second part
    has about the wanted number of them.

    Examples
    --------
    >>> first, second = split_rows(np.array([0, 0, 0, 1, 1, 1]), 1 / 3, seed=0)
    >>> first.size, second.size
    (4, 2)
    """
    if not 0.0 < fraction < 1.0:
        raise InvalidParameterError(f"`fraction` must be in (0, 1), got {fraction!r}.")
    rows = np.arange(len(y))
    if rows.size < 2:
        raise InvalidInputError(
            f"at least 2 samples are needed to split them into two parts, got {rows.size}."
        )
    # Rounded up, as in the paper: a third of 85 is 29.  0.3 * 10 is slightly more than 3.
    n_second = min(max(math.ceil(fraction * rows.size - 1e-9), 1), rows.size - 1)
    if groups is not None:
        codes, _ = group_codes(groups, rows.size)
        strata = np.unique(y, return_inverse=True)[1] if stratify else None
        second = hold_out_groups(codes, strata, fraction, np.random.default_rng(seed))
        return np.delete(rows, second), second
    counts = np.unique(y, return_counts=True)[1] if stratify else np.empty(0, dtype=np.int64)
    # Each part needs a sample of every class.
    fits = counts.size <= min(n_second, rows.size - n_second) and counts.min(initial=2) >= 2
    first, second = train_test_split(
        rows, test_size=n_second, stratify=y if stratify and fits else None, random_state=seed
    )
    return np.sort(first), np.sort(second)


def fold_numbers(codes: Array, n_folds: int, seed: int) -> Array:
    """Return the number of the fold of every sample; classes are spread over the folds.

    Unlike `sklearn.model_selection.StratifiedKFold` this accepts classes with fewer samples than
    folds.

    Parameters
    ----------
    codes : ndarray of int
        Class numbers.
    n_folds : int
        Number of folds; with fewer samples than folds, some are empty.
    seed : int
        Seed of the order within each class.

    Examples
    --------
    >>> np.bincount(fold_numbers(np.array([0, 0, 0, 0, 0, 1]), 3, seed=0)).tolist()
    [2, 2, 2]
    """
    order = np.random.default_rng(seed).permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    folds = np.empty(len(codes), dtype=np.int64)
    folds[order] = np.arange(len(codes)) % n_folds
    return folds
