"""The strongest features: their importance, statistics and stability."""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon.errors import RatoonError
from ratoon.report.context import ReportContext
from ratoon.report.svg import plain


def build(context: ReportContext) -> dict[str, Any] | None:
    """Return one row per feature; a fitted selector replaces the ranking of the estimator."""
    strength, first = ranking(context, context.top)
    if not first.size:
        return None
    found = full_ranking(context)
    selector = context.selector
    frequency = None if selector is None else selector.selection_frequency_
    largest = strength[first[0]]
    is_f = found.statistic_name == "F"
    rows = []
    for row, j in zip(found.select(first), first.tolist(), strict=True):
        rows.append(
            {
                "rank": row["rank"],
                "name": context.feature_name(j),
                "share": f"{100 * strength[j]:#.3g} %",
                "bar": f"{100 * strength[j] / largest:.1f}",
                "stability": None if frequency is None else f"{frequency[j]:.0%}",
                "direction": row.get("direction", ""),
                "difference": _signed(row.get("difference")),
                "statistic": _signed(row.get("statistic")).lstrip("+" if is_f else ""),
                "fdr": f"{row['fdr']:.2g}" if "fdr" in row else "",
            }
        )
    return {
        "rows": rows,
        "has_statistics": found.statistics is not None,
        "has_direction": any(row["direction"] for row in rows),
        "statistic": found.statistic_name,
        "difference": found.difference_name,
        "on": found.rows,
        "stability": stability_facts(selector),
    }


def full_ranking(context: ReportContext) -> Any:
    """Return the ranking of the selector, or else that of the model.

    A model without statistics of its training rows, such as one of an earlier version, gets those
    of the training samples if they are known, or else of the samples of the page.
    """
    if context.selector is not None and hasattr(context.selector, "ranked_"):
        return context.selector.ranked_
    if context.selector is not None:
        from ratoon.explain import Ranking

        names = context.feature_names
        return Ranking(np.asarray(context.selector.strength_), None, names, None, "without labels")
    found = context.estimator.ranking_
    reference = context.reference
    if found.statistics is not None or reference is None or reference.y is None:
        return found
    try:
        return context.estimator.rank_features(reference)
    except (RatoonError, ValueError):  # of other classes, for example
        return found


def ranking(context: ReportContext, top: int) -> tuple[Any, Any]:
    """Return the importance of every feature, and the strongest features, strongest first."""
    found = full_ranking(context)
    first = found.order[:top]
    return found.importance, first[found.importance[first] > 0]


def stability_facts(selector: Any) -> dict[str, Any] | None:
    """Return the number of models of a selector, their agreement, and the stable features."""
    if selector is None:
        return None
    index = float(selector.stability_)
    stable = selector.stable_features() if getattr(selector, "_n_halves", 0) >= 2 else None
    return {
        "networks": len(selector.strengths_),
        "kept": int(selector.n_features_),
        "index": None if np.isnan(index) else f"{index:.2f}",
        "stable": None if stable is None else str(stable),
    }


def _signed(value: float | None) -> str:
    return "" if value is None else ("+" if value > 0 else "") + plain(value)
