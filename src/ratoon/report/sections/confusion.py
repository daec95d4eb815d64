"""Confusion matrix and scores per class."""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon.metrics import ClassScores, Score
from ratoon.report.context import ReportContext

MOST_CLASSES = 30
"""With more classes the page has the scores per class, not the matrix."""


def build(context: ReportContext) -> dict[str, Any] | None:
    """Return the cells of the matrix, and one row of scores per class."""
    scored, scores = context.scored, context.scores
    if scored is None or not isinstance(scores, ClassScores):
        return None
    return {
        "matrix": None if len(scored.classes) > MOST_CLASSES else matrix(scored),
        "rows": [
            {
                "code": code,
                "name": row.name,
                "n": row.n_samples,
                "precision": percent_cell(row.precision),
                "recall": percent_cell(row.recall),
                "roc_auc": cell(row.roc_auc),
            }
            for code, row in enumerate(scores.classes)
        ],
        "is_mean": scored.n_repeats > 1,
    }


def matrix(predictions: Any) -> dict[str, Any]:
    """Return the confusion matrix as table cells.

    Examples
    --------
    >>> from ratoon.metrics import Predictions
    >>> p = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
    >>> table = matrix(Predictions.of_classes([0, 1, 1], p, ("a", "b")))
    >>> [[cell["count"] for cell in row["cells"]] for row in table["rows"]]
    [['1', '1'], ['0', '1']]
    >>> table["rows"][0]["precision"], table["recall"], table["accuracy"]
    ('50.0 %', ['100.0 %', '50.0 %'], '66.7 %')
    """
    counts = predictions.confusion()
    of_true, of_predicted = counts.sum(axis=0), counts.sum(axis=1)
    right = np.diag(counts)
    names = predictions.classes
    rows = [
        {
            "name": name,
            "code": i,
            "cells": [
                {
                    "count": _count(counts[i, j]),
                    "right": i == j,
                    "row": i,
                    "column": j,
                    # Four levels of colour, by the fraction of the true class.
                    "tone": int(np.ceil(4 * counts[i, j] / max(of_true[j], 1))),
                    "share": _percent(counts[i, j], of_true[j]),
                }
                for j in range(len(names))
            ],
            "precision": _percent(right[i], of_predicted[i]),
        }
        for i, name in enumerate(names)
    ]
    return {
        "names": list(names),
        "rows": rows,
        "recall": [_percent(right[j], of_true[j]) for j in range(len(names))],
        "accuracy": _percent(right.sum(), counts.sum()),
    }


def cell(score: Score) -> dict[str, str]:
    """Return a score as a table cell: value and interval."""
    if score.value is None:
        return {"value": "-", "interval": ""}
    if score.low is None or score.high is None:
        return {"value": f"{score.value:.3f}", "interval": ""}
    return {"value": f"{score.value:.3f}", "interval": f"{score.low:.3f} to {score.high:.3f}"}


def percent_cell(score: Score) -> dict[str, str]:
    """Return a proportion as a table cell, in per cent."""
    if score.value is None or score.low is None or score.high is None:
        return {"value": "-", "interval": ""}
    return {
        "value": f"{100 * score.value:.1f} %",
        "interval": f"{100 * score.low:.1f} to {100 * score.high:.1f}",
    }


def _count(value: float) -> str:
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.1f}"


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"
