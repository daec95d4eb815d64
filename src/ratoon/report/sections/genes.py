"""The strongest features."""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon.report.context import ReportContext
from ratoon.report.facts import highest_class


def build(context: ReportContext) -> dict[str, Any] | None:
    """Return one row per feature; a fitted selector replaces the ranking of the estimator."""
    strength, first = ranking(context, context.top)
    if not first.size:
        return None
    selector = context.selector
    highest = highest_class(context.reference, first)
    return {
        "rows": [
            {
                "rank": place + 1,
                "name": context.feature_name(j),
                "share": f"{100 * strength[j]:#.3g} %",
                "bar": f"{100 * strength[j] / strength[first[0]]:.1f}",
                "highest": highest[place] if highest else "",
                "stability": None
                if selector is None
                else f"{selector.selection_frequency_[j]:.0%}",
            }
            for place, j in enumerate(first.tolist())
        ],
        "stability": stability_facts(selector),
    }


def ranking(context: ReportContext, top: int) -> tuple[Any, Any]:
    """Return the strength of every feature, and the strongest features, strongest first."""
    selector = context.selector
    ranks = context.estimator.feature_importances_ if selector is None else selector.strength_
    strength = np.asarray(ranks)
    first = np.argsort(-strength, kind="stable")[:top]
    return strength, first[strength[first] > 0]


def stability_facts(selector: Any) -> dict[str, Any] | None:
    """Return the number of networks of a selector and their stability index."""
    if selector is None:
        return None
    index = float(selector.stability_)
    return {
        "networks": len(selector.strengths_),
        "kept": int(selector.n_features_),
        "index": None if np.isnan(index) else f"{index:.2f}",
    }
