"""Comparisons: paired differences over splits and over sets, and ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata, studentized_range
from scipy.stats import t as student

Array = NDArray[Any]
Rows = list[dict[str, Any]]
Table = dict[tuple[str, str], dict[int, float]]


def tabulated(rows: Rows, column: str) -> Table:
    """Return ``{(method, set): {split: value}}``, without values that are not there."""
    table: Table = {}
    for row in rows:
        if np.isfinite(row[column]):
            table.setdefault((row["method"], row["set"]), {})[row["split"]] = row[column]
    return table


@dataclass(frozen=True)
class Difference:
    """How much better one method is than another, in points, over splits they share."""

    by_set: dict[str, Array]

    @property
    def means(self) -> dict[str, float]:
        """Mean difference of every set."""
        return {name: float(values.mean()) for name, values in self.by_set.items()}

    @property
    def mean(self) -> float:
        """Mean over sets, each counting the same."""
        return float(np.mean(list(self.means.values())))

    def half_over_splits(self) -> float:
        """Half the 95 % interval if these sets are all there is and splits vary.

        Splits of a set share rows, so it is somewhat too narrow.
        """
        if any(values.size < 2 for values in self.by_set.values()):
            return float("nan")
        squares = [values.var(ddof=1) / values.size for values in self.by_set.values()]
        return 1.96 * float(np.sqrt(np.sum(squares))) / len(squares)

    def half_over_sets(self) -> float:
        """Half the 95 % interval with sets as the unit, for sets one has not seen."""
        means = np.array(list(self.means.values()))
        if means.size < 2:
            return float("nan")
        error = means.std(ddof=1) / np.sqrt(means.size)
        return float(student.ppf(0.975, means.size - 1) * error)

    def worst(self) -> tuple[str, float]:
        """The set with the least difference."""
        return min(self.means.items(), key=lambda item: item[1])


def difference(table: Table, method: str, other: str, sets: list[str]) -> Difference | None:
    """Compare two methods split by split; None unless they share splits of every set.

    >>> table = {("a", "x"): {0: 3.0, 1: 2.0}, ("b", "x"): {0: 1.0, 1: 2.0}}
    >>> difference(table, "a", "b", ["x"]).mean
    1.0
    """
    by_set = {}
    for name in sets:
        mine, its = table.get((method, name), {}), table.get((other, name), {})
        shared = sorted(mine.keys() & its.keys())
        if not shared:
            return None
        by_set[name] = np.array([mine[number] - its[number] for number in shared])
    return Difference(by_set) if by_set else None


def comparable(table: Table, methods: list[str], sets: list[str]) -> list[str]:
    """Return the methods that have at least a third as many splits of every set as any has."""
    counts = {m: min(len(table.get((m, name), {})) for name in sets) for m in methods}
    most = max(counts.values(), default=0)
    return [m for m in methods if counts[m] > 0 and 3 * counts[m] >= most]


def mean_ranks(table: Table, methods: list[str], sets: list[str]) -> tuple[dict[str, float], float]:
    """Return the mean rank of methods over sets, 1 the best, and Nemenyi's critical difference.

    Ranks are those of accuracies over the splits that all methods have.  Two methods whose mean
    ranks are further apart than the critical difference differ at the 5 % level.
    """
    lines = []
    for name in sets:
        shared = set.intersection(*(set(table[method, name]) for method in methods))
        means = [np.mean([table[method, name][number] for number in shared]) for method in methods]
        lines.append(rankdata(-np.array(means)))
    ranks = np.mean(lines, axis=0)
    k = len(methods)
    q = float(studentized_range.ppf(0.95, k, 10_000)) / np.sqrt(2)
    critical = q * np.sqrt(k * (k + 1) / (6 * len(sets)))
    return dict(zip(methods, ranks.tolist(), strict=True)), float(critical)
