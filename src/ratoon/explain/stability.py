"""Stability of a selection over resamples, and a bound on the features selected falsely.

Samples are divided at random into two halves, several times, and features are ranked on every half.
Let a feature's frequency be the fraction of the halves in which it is among the first k of p.  A
feature is *unlikely* to be selected if the probability of that is at most k / p, as for random
selection.  Of the features with a frequency of at least t, the expected number of unlikely ones is
bounded (Shah and Samworth, JRSS B 75, 2013, for complementary halves), without an assumption on
the model, the features or the ranking, by ``k^2 / (p (2 t - 1))`` (the bound of Meinshausen and
Buehlmann, JRSS B 72, 2010).  Where the distribution of the frequencies of unlikely features is
unimodal, a bound that is up to twice as sharp holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.errors import InvalidParameterError

THRESHOLD = 0.9


@dataclass(frozen=True, eq=False)
class StableSelection:
    """Features selected in at least a given fraction of the halves.

    Parameters
    ----------
    features : ndarray of int
        Their indices, the most frequent first.
    threshold : float
        The fraction.
    expected_false : float
        Bound on the expected number of features among them that are selected no more often than
        at random; without assumptions.
    expected_false_unimodal : float
        The sharper bound for unimodal frequencies; never above the first.
    n_halves : int
        Number of rankings.
    k : int
        Number of features selected in each.
    """

    features: NDArray[np.int64]
    threshold: float
    expected_false: float
    expected_false_unimodal: float
    n_halves: int
    k: int

    def __str__(self) -> str:
        n = self.features.size
        return (
            f"{n} {'feature is' if n == 1 else 'features are'} among the first {self.k} in at least"
            f" {self.threshold:.0%} of {self.n_halves} halves of the samples; expected number of"
            f" false ones among them: at most {self.expected_false:.2g}"
        )


def stable_selection(
    frequency: Array, *, k: int, n_halves: int, threshold: Any = THRESHOLD
) -> StableSelection:
    """Return the features with a frequency of at least ``threshold``, and the bounds.

    Examples
    --------
    >>> found = stable_selection(np.array([1.0, 0.2, 0.95] + [0.0] * 997), k=10, n_halves=20)
    >>> found.features.tolist(), round(found.expected_false, 3)
    ([0, 2], 0.125)
    """
    is_number = isinstance(threshold, int | float | np.number) and not isinstance(threshold, bool)
    if not is_number or not 0.5 < threshold <= 1.0:
        raise InvalidParameterError(
            f"`threshold` must be a number above 0.5 and at most 1, got {threshold!r}: the bound"
            f" on false selections needs a majority."
        )
    order = np.argsort(-frequency, kind="stable")
    # A fraction of counts: 18 of 20 is 0.9 in spite of rounding.
    features = order[frequency[order] >= threshold - 1e-9]
    general = expected_false(k, frequency.size, threshold)
    sharper = min(general, _unimodal(k, frequency.size, threshold, max(n_halves // 2, 1)))
    return StableSelection(features, float(threshold), general, sharper, n_halves, k)


def expected_false(k: int, n_features: int, threshold: float) -> float:
    """Return ``k^2 / (p (2 t - 1))``, at most k / t.

    Examples
    --------
    >>> expected_false(50, 12_600, 0.9)
    0.248...
    """
    # Frequencies sum up to k, so no more than k / t features can have one of t.
    return min(k * k / (n_features * (2.0 * threshold - 1.0)), k / threshold)


def _unimodal(k: int, n_features: int, threshold: float, n_pairs: int) -> float:
    """Return the bound of Shah and Samworth (2013), theorem 2, for unimodal frequencies."""
    theta, b = k / n_features, n_pairs
    if theta > 1.0 / np.sqrt(3.0):
        return float("inf")
    least = min(0.5 + theta**2, 0.5 + 1.0 / (2 * b) + 0.75 * theta**2)
    if threshold <= least:
        return float("inf")
    if threshold <= 0.75:
        room = 2.0 * threshold - 1.0 - 1.0 / (2 * b)
        factor = 1.0 / (2.0 * room) if room > 0 else float("inf")
    else:
        factor = 4.0 * (1.0 - threshold + 1.0 / (2 * b)) / (1.0 + 1.0 / b)
    return float(factor * theta * k)


def complementary_halves(
    codes: Array | None,
    n_rows: int,
    n_parts: int,
    rng: np.random.Generator,
    groups: NDArray[np.int64] | None = None,
) -> list[Array]:
    """Return the rows of halves of the samples; every two are complementary.

    Halves are stratified by class, and a sample that is alone in its class is in both.  With
    ``groups``, the number of the group of every sample, halves are of groups instead, stratified by
    the most frequent class of each.

    Examples
    --------
    >>> one, other = complementary_halves(None, 5, 2, np.random.default_rng(0))
    >>> one.tolist(), other.tolist()
    ([2, 4], [0, 1, 3])
    >>> patients = np.array([0, 0, 1, 1, 2, 2])
    >>> one, other = complementary_halves(None, 6, 2, np.random.default_rng(0), patients)
    >>> one.tolist(), other.tolist()
    ([4, 5], [0, 1, 2, 3])
    """
    if groups is not None:
        of_group = None if codes is None else _group_strata(groups, codes)
        halves = complementary_halves(of_group, int(groups.max()) + 1, n_parts, rng)
        return [np.flatnonzero(np.isin(groups, half)) for half in halves]
    codes = np.zeros(n_rows, dtype=np.int64) if codes is None else codes
    strata = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    halves = []
    while len(halves) < n_parts:
        first = np.zeros(n_rows, dtype=bool)
        both = np.zeros(n_rows, dtype=bool)
        larger = False  # odd classes give their extra sample to either half in turn
        for rows in strata:
            if rows.size == 1:
                both[rows] = True
                continue
            size = rows.size // 2 + (rows.size % 2 if larger else 0)
            larger = larger != bool(rows.size % 2)
            first[rng.permutation(rows)[:size]] = True
        halves += [np.flatnonzero(first | both), np.flatnonzero(~first | both)]
    return halves[:n_parts]


def _group_strata(groups: NDArray[np.int64], codes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the most frequent class of every group; groups that are alone in theirs are joined.

    Examples
    --------
    >>> _group_strata(np.array([0, 0, 0, 1, 2, 3, 4]), np.array([1, 1, 0, 1, 1, 0, 2])).tolist()
    [1, 1, 1, 3, 3]
    """
    counts = np.zeros((int(groups.max()) + 1, int(codes.max()) + 1))
    np.add.at(counts, (groups, codes), 1.0)
    strata = np.asarray(counts.argmax(axis=1), dtype=np.int64)
    sizes = np.bincount(strata, minlength=counts.shape[1])
    alone = sizes[strata] == 1
    strata[alone] = counts.shape[1] if alone.sum() > 1 else int(sizes.argmax())
    return strata
