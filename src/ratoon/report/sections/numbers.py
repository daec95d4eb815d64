"""Predicted against true numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon.metrics import NumberScores
from ratoon.report.context import ReportContext, sample_names
from ratoon.report.svg import Chart, Html

MOST_POINTS = 3000


def build(context: ReportContext) -> dict[str, Any] | None:
    """Return the charts of predictions and of errors."""
    predictions, scores = context.predictions, context.scores
    if predictions is None or context.data is None or not isinstance(scores, NumberScores):
        return None
    rows = np.arange(predictions.n_samples)
    if context.trained_on is not None and not context.trained_on.all():
        rows = rows[~context.trained_on]
    n = rows.size
    if n > MOST_POINTS:
        rows = rows[np.linspace(0, n - 1, MOST_POINTS).astype(np.int64)]
    true, predicted = predictions.truth[rows], predictions.consensus()[rows]
    names = sample_names(context.data)
    titles = [
        f"{names[row]}: true {t:.4g}, predicted {p:.4g}"
        for row, t, p in zip(rows.tolist(), true.tolist(), predicted.tolist(), strict=True)
    ]
    return {
        "predicted": _predicted(true, predicted, titles, rows, scores),
        "errors": _errors(true, predicted, titles, rows),
        "n": n,
        "n_shown": int(rows.size),
        "n_repeats": predictions.n_repeats,
    }


def _range(*values: Any) -> tuple[float, float]:
    low = min(float(np.min(one)) for one in values)
    high = max(float(np.max(one)) for one in values)
    slack = 0.04 * (high - low) or 1.0
    return low - slack, high + slack


def _predicted(true: Any, predicted: Any, titles: list[str], rows: Any, scores: Any) -> Html:
    both = _range(true, predicted)
    text = f"Predicted against true values; R squared {scores.r2}, RMSE {scores.rmse}."
    chart = Chart(text, both, both, height=400, margins=(62, 14, 14, 46), css="zoom")
    chart.axes("true", "predicted")
    chart.line(both, both, "reference", title="predicted = true")
    css = ["dot soft c0"] * len(titles)
    chart.dots(true, predicted, css=css, titles=titles, keys=rows, radius=_radius(len(titles)))
    return chart.html()


def _errors(true: Any, predicted: Any, titles: list[str], rows: Any) -> Html:
    errors = predicted - true
    chart = Chart(
        "Error of every prediction over the true value.",
        _range(true),
        _range(errors, [0.0]),
        height=400,
        margins=(62, 14, 14, 46),
        css="zoom",
    )
    chart.axes("true", "error (predicted - true)")
    chart.line(chart.x, (0.0, 0.0), "reference", title="no error")
    css = ["dot soft c1"] * len(titles)
    chart.dots(true, errors, css=css, titles=titles, keys=rows, radius=_radius(len(titles)))
    return chart.html()


def _radius(n: int) -> float:
    return 4.5 if n <= 300 else 3.0
