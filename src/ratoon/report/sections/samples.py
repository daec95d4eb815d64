"""The table of samples: what was predicted for each, misclassified samples first."""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon.metrics import Predictions
from ratoon.report.context import ReportContext, sample_names

MOST_ROWS = 10_000
STATIC_ROWS = 50
"""Rows in the page itself; the others are in its data and need the script."""


def build(context: ReportContext) -> dict[str, Any] | None:
    """Return the rows in their first order, as cells and as the script's data."""
    predictions, data = context.predictions, context.data
    if predictions is None or data is None:
        return None
    names = sample_names(data)
    if predictions.is_of_classes:
        columns, rows, n_wrong = _of_classes(predictions, names, context.trained_on)
    elif predictions.is_of_survival:
        columns, rows, n_wrong = _of_survival(predictions, names, context.trained_on)
    else:
        columns, rows, n_wrong = _of_numbers(predictions, names, context.trained_on)
    n = len(rows)
    rows = rows[:MOST_ROWS]
    return {
        "columns": columns,
        "rows": [_cells(row, columns, predictions.classes) for row in rows[:STATIC_ROWS]],
        "n": n,
        "n_kept": len(rows),
        "n_wrong": n_wrong,
        "classes": list(predictions.classes),
        "n_repeats": predictions.n_repeats,
        "is_survival": predictions.is_of_survival,
        "block": {
            "columns": columns,
            "classes": list(predictions.classes),
            "rows": rows,
        },
    }


def _column(name: str, kind: str, title: str = "") -> dict[str, str]:
    return {"name": name, "kind": kind, "title": title}


def _of_classes(
    predictions: Predictions, names: tuple[str, ...], trained_on: Any
) -> tuple[list[dict[str, str]], list[list[Any]], int]:
    guess, p = predictions.consensus(), predictions.mean_probabilities()
    truth, each = predictions.truth, np.arange(predictions.n_samples)
    of_true = p[each, truth]
    others = p.copy()
    others[each, truth] = -np.inf
    margin = of_true - others.max(axis=1) if p.shape[1] > 1 else of_true
    right = predictions.right().sum(axis=0)
    columns = [
        _column("sample", "text"),
        _column("true", "class"),
        _column("predicted", "class"),
        _column("probability", "share", "of the predicted class"),
        _column("margin", "signed", "probability of the true class minus the largest other one"),
    ]
    if predictions.n_repeats > 1:
        columns.append(_column("right", "count", f"of {predictions.n_repeats} repeats"))
    if trained_on is not None and trained_on.any() and not trained_on.all():
        columns.append(_column("used for", "text"))
    rows = []
    # Wrong predictions first, and of each kind the surest error or the least sure success.
    for row in np.lexsort((margin, guess == truth)).tolist():
        cells: list[Any] = [
            row,
            names[row],
            int(truth[row]),
            int(guess[row]),
            round(float(p[row, guess[row]]), 4),
            round(float(margin[row]), 4),
        ]
        if predictions.n_repeats > 1:
            cells.append(int(right[row]))
        if len(columns) > len(cells) - 1:
            cells.append("training" if trained_on[row] else "scoring")
        rows.append(cells)
    return columns, rows, int((guess != truth).sum())


def _of_numbers(
    predictions: Predictions, names: tuple[str, ...], trained_on: Any
) -> tuple[list[dict[str, str]], list[list[Any]], int]:
    guess, truth = predictions.consensus(), predictions.truth
    errors = guess - truth
    columns = [
        _column("sample", "text"),
        _column("true", "number"),
        _column("predicted", "number"),
        _column("error", "number", "predicted minus true"),
        _column("magnitude", "number", "of the error"),
    ]
    has_parts = trained_on is not None and trained_on.any() and not trained_on.all()
    if has_parts:
        columns.append(_column("used for", "text"))
    rows = []
    for row in np.argsort(-np.abs(errors), kind="stable").tolist():
        values = (truth[row], guess[row], errors[row], abs(errors[row]))
        cells: list[Any] = [row, names[row], *(float(f"{value:.6g}") for value in values)]
        if has_parts:
            cells.append("training" if trained_on[row] else "scoring")
        rows.append(cells)
    return columns, rows, 0


def _of_survival(
    predictions: Predictions, names: tuple[str, ...], trained_on: Any
) -> tuple[list[dict[str, str]], list[list[Any]], int]:
    risks, times, events = predictions.consensus(), predictions.truth, predictions.events
    assert events is not None
    columns = [
        _column("sample", "text"),
        _column("time", "number", "until the event or the end of observation"),
        _column("event", "text", "whether it was observed"),
        _column("log risk", "signed", "0 is the risk of an average sample"),
    ]
    has_parts = trained_on is not None and trained_on.any() and not trained_on.all()
    if has_parts:
        columns.append(_column("used for", "text"))
    rows = []
    for row in np.argsort(-risks, kind="stable").tolist():
        seen = "yes" if events[row] else "no"
        cells: list[Any] = [
            row,
            names[row],
            float(f"{times[row]:.6g}"),
            seen,
            round(float(risks[row]), 4),
        ]
        if has_parts:
            cells.append("training" if trained_on[row] else "scoring")
        rows.append(cells)
    return columns, rows, 0


def _cells(
    row: list[Any], columns: list[dict[str, str]], classes: tuple[str, ...]
) -> dict[str, Any]:
    """Return one row as text, as the script writes it."""
    cells = []
    for column, value in zip(columns, row[1:], strict=True):
        kind = column["kind"]
        if kind == "class":
            cells.append({"text": classes[value], "kind": kind, "code": value})
        elif kind == "share":
            cells.append({"text": f"{100 * value:.1f} %", "kind": kind, "value": value})
        elif kind == "signed":
            cells.append({"text": f"{value:.3f}", "kind": kind, "value": value})
        elif kind == "number":
            cells.append({"text": f"{value:.4g}", "kind": kind})
        else:
            cells.append({"text": str(value), "kind": kind})
    wrong = bool(classes) and row[2] != row[3]
    return {"cells": cells, "wrong": wrong, "key": row[0]}
