"""Gene sets: enrichment of the ranking, and neurons that are groups of features.

Left out unless sets are given or the first layer of the network was made from groups.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ratoon.report.context import ReportContext

N_SETS = 25
N_LEADING = 6
MOST_CLASSES = 10


def build(context: ReportContext) -> dict[str, Any] | None:
    """Return the sets with the smallest p values of ``context.extras["pathways"]``, and neurons."""
    found = context.extras.get("pathways")
    neurons = _neurons(context)
    if found is None and neurons is None:
        return None
    return {"sets": None if found is None else _sets(found), "neurons": neurons}


def _neurons(context: ReportContext) -> dict[str, Any] | None:
    """Return the groups with the largest contributions to the predictions of the page."""
    data, estimator = context.data, context.estimator
    groups = getattr(estimator, "group_names_", None)
    if groups is None or data is None or not data.n_samples or context.predictions is None:
        return None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        found = estimator.explain_groups(data.X if data.groups is None else data)
    importance = found.importance()[: len(groups)]
    activity = found.data[:, : len(groups)]
    first = np.argsort(-importance, kind="stable")[:N_SETS]
    largest = max(float(importance[first[0]]), 1e-300)
    classes: tuple[str, ...] = ()
    members: list[Any] = []
    if data.class_names is not None and data.y is not None:
        classes = tuple(data.class_names)
        members = [np.flatnonzero(data.y == code) for code in range(len(classes))]
    return {
        "rows": [
            {
                "name": str(groups[j]),
                "importance": f"{importance[j]:.3g}",
                "bar": f"{100 * importance[j] / largest:.1f}",
                "means": [
                    f"{activity[rows, j].mean():.3g}" if rows.size else "" for rows in members
                ],
            }
            for j in first.tolist()
        ],
        "classes": classes if len(classes) <= MOST_CLASSES else (),
        "n": len(groups),
        "unit": found.unit,
    }


def _sets(found: Any) -> dict[str, Any]:
    has_sum = bool(found.n_permutations)
    first = found.top(N_SETS)
    largest = max([abs(row["normalised"] or 0.0) for row in first] + [1e-300])
    return {
        "rows": [
            {
                "name": row["set"],
                "size": row["size"],
                "found": row["found"],
                "expected": f"{row['expected']:.1f}",
                "fdr_over": f"{row['fdr_over']:.2g}",
                "score": f"{row['normalised']:+.2f}" if has_sum else "",
                "x": f"{100 + min(0.0, 100 * (row['normalised'] or 0.0) / largest):.1f}",
                "width": f"{100 * abs(row['normalised'] or 0.0) / largest:.1f}",
                "css": "up" if (row["normalised"] or 0.0) >= 0 else "down",
                "fdr_rank": f"{row['fdr_rank']:.2g}" if has_sum else "",
                "direction": row["direction"],
                "leading": ", ".join(row["leading"][:N_LEADING]),
            }
            for row in first
        ],
        "n": len(found.rows),
        "k": found.k,
        "n_background": f"{found.n_background:,}",
        "n_permutations": f"{found.n_permutations:,}",
        "has_sum": has_sum,
        "signed": found.signed,
        "on": found.rows_of_ranking,
    }
