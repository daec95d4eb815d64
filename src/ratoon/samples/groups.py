"""Groups of samples that stay together when samples are split: patients, batches, centres."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError

LARGE_GROUP = 5
"""Mean size from which groups are taken for batches rather than patients with a few samples."""

PREDICTABLE = 0.95
"""Fraction of samples whose class is that of most of their group."""


class ConfoundedGroupsWarning(UserWarning):
    """The groups of the samples give their classes away."""


def group_codes(groups: Any, n_samples: int) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return the number of the group of every sample, and the names of the groups.

    Examples
    --------
    >>> codes, names = group_codes(["p2", "p1", "p2"], 3)
    >>> codes.tolist(), names
    ([1, 0, 1], ('p1', 'p2'))
    """
    given = np.asarray(groups)
    if given.ndim != 1 or given.shape[0] != n_samples:
        raise InvalidInputError(
            f"`groups` must name one group per sample, {n_samples} in all; got shape {given.shape}."
        )
    texts = np.array([str(one) for one in given.tolist()], dtype=object)
    missing = [number for number, one in enumerate(texts) if one in ("", "nan", "None", "NA")]
    if missing:
        raise InvalidInputError(
            f"`groups`: {len(missing)} samples have no group, the first is sample"
            f" {missing[0] + 1}.\n  Give each sample a group; those without one may each get their"
            " own."
        )
    names, codes = np.unique(texts, return_inverse=True)
    if names.size < 2:
        raise InvalidInputError(
            f"`groups`: all samples are in one group, {names[0]!r}, so they cannot be split by"
            " group."
        )
    return codes.astype(np.int64), tuple(map(str, names))


def grouped_folds(
    groups: NDArray[np.int64],
    strata: NDArray[np.int64] | None,
    n_folds: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Return the fold of every sample; no group is in two folds, classes are spread over them.

    Groups are assigned one after the other, the largest first, each to the fold in which it makes
    the class counts of the folds most equal.  With fewer groups than folds there are as many folds
    as groups.

    Examples
    --------
    >>> groups = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    >>> strata = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> folds = grouped_folds(groups, strata, 2, np.random.default_rng(0))
    >>> [sorted(strata[folds == fold].tolist()) for fold in range(2)]
    [[0, 0, 1, 1], [0, 0, 1, 1]]
    """
    counts = _class_counts(groups, strata)
    n_folds = min(n_folds, counts.shape[0])
    order = rng.permutation(counts.shape[0])
    order = order[np.argsort(-counts[order].sum(axis=1), kind="stable")]
    totals = np.maximum(counts.sum(axis=0), 1)
    filled = np.zeros((n_folds, counts.shape[1]))
    fold_of = np.empty(counts.shape[0], dtype=np.int64)
    for position, group in enumerate(order):
        empty = np.flatnonzero(filled.sum(axis=1) == 0)
        left = counts.shape[0] - position
        allowed = empty if empty.size >= left else np.arange(n_folds)
        costs = []
        for fold in allowed:
            tried = filled.copy()
            tried[fold] += counts[group]
            costs.append((float((tried / totals).std(axis=0).mean()), float(tried[fold].sum())))
        best = int(allowed[min(range(len(costs)), key=costs.__getitem__)])
        filled[best] += counts[group]
        fold_of[group] = best
    return fold_of[groups]


def hold_out_groups(
    groups: NDArray[np.int64],
    strata: NDArray[np.int64] | None,
    fraction: float,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Return the rows of whole groups, about a fraction of the samples of each class.

    Examples
    --------
    >>> groups = np.repeat(np.arange(10), 3)
    >>> held = hold_out_groups(groups, None, 0.3, np.random.default_rng(0))
    >>> held.size, np.unique(groups[held]).size
    (9, 3)
    """
    counts = _class_counts(groups, strata)
    wanted = fraction * counts.sum(axis=0)
    held = np.zeros(counts.shape[1])
    chosen: list[int] = []
    for group in rng.permutation(counts.shape[0]):
        if len(chosen) == counts.shape[0] - 1:
            break
        nearer = np.abs(held + counts[group] - wanted).sum() < np.abs(held - wanted).sum()
        if nearer:
            held += counts[group]
            chosen.append(int(group))
    if not chosen:  # every group is larger than what is wanted
        chosen = [int(np.argmin(counts.sum(axis=1)))]
    return np.flatnonzero(np.isin(groups, chosen))


def warn_if_confounded(
    groups: NDArray[np.int64],
    strata: NDArray[np.int64] | None,
    *,
    name: str = "groups",
    stacklevel: int = 2,
) -> None:
    """Warn if the classes of the samples can be read off their groups, which are batches.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_if_confounded(np.repeat([0, 1], 10), np.repeat([0, 1], 10))
    >>> [warning.category.__name__ for warning in caught]
    ['ConfoundedGroupsWarning']
    """
    if strata is None:
        return
    counts = _class_counts(groups, strata)
    if counts.shape[0] * LARGE_GROUP > groups.size:
        return
    guessed = counts.max(axis=1).sum() / groups.size
    if guessed >= PREDICTABLE and counts.sum(axis=0).max() < PREDICTABLE * groups.size:
        warnings.warn(
            f"{name}: {guessed:.0%} of the samples have the class of most of their group, and the"
            f" {counts.shape[0]} groups have {groups.size / counts.shape[0]:.0f} samples each.\n"
            "  A model may learn the group (a batch) instead of the class, and no split can show"
            " it. Centring groups would remove the class as well.",
            ConfoundedGroupsWarning,
            stacklevel=stacklevel + 1,
        )


def _class_counts(groups: NDArray[np.int64], strata: Array | None) -> Array:
    """Return the number of samples of each class in each group, (groups, classes)."""
    classes = np.zeros_like(groups) if strata is None else np.asarray(strata)
    counts = np.zeros((int(groups.max()) + 1, int(classes.max()) + 1))
    np.add.at(counts, (groups, classes), 1.0)
    return counts
