"""ROC, precision-recall and calibration curves."""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon.metrics import Predictions
from ratoon.metrics.curves import (
    Bin,
    Curve,
    calibration,
    precision_recall_curves,
    roc_curves,
    shown_classes,
)
from ratoon.report.context import ReportContext
from ratoon.report.svg import Chart, Html, colour_of

MOST_CURVES = 12
"""With more classes the charts show those with the smallest areas."""


def build(context: ReportContext) -> dict[str, Any] | None:
    """Return the charts and their legend."""
    scored = context.scored
    if scored is None or not scored.is_of_classes:
        return None
    codes = shown_classes(scored)
    roc, pr = roc_curves(scored), precision_recall_curves(scored)
    if not roc:
        return None
    worst = sorted(range(len(roc)), key=lambda k: roc[k].area)[:MOST_CURVES]
    shown = sorted(worst)
    binary = len(scored.classes) == 2
    figures = [
        (_roc(roc, codes, shown, binary), "ROC curve"),
        (_precision_recall(pr, codes, shown, scored, binary), "Precision and recall"),
        (_calibration(calibration(scored), scored, binary), "Calibration"),
    ]
    return {
        "figures": [{"svg": svg, "title": title} for svg, title in figures],
        "legend": [
            {
                "code": codes[k],
                "css": colour_of(codes[k]),
                "name": roc[k].name,
                "roc": f"{roc[k].area:.3f}",
                "pr": f"{pr[k].area:.3f}",
            }
            for k in shown
        ],
        "binary": scored.classes[1] if binary else None,
        "n_left_out": len(roc) - len(shown),
        "n_repeats": scored.n_repeats,
    }


def _roc(curves: list[Curve], codes: list[int], shown: list[int], binary: bool) -> Html:
    areas = ", ".join(f"{curves[k].name} {curves[k].area:.3f}" for k in shown)
    chart = Chart(f"ROC curves. Areas: {areas}.", (0, 1), (0, 1), height=400, css="zoom")
    chart.axes("false positive rate, %", "true positive rate, %", percent=True)
    chart.line([0, 1], [0, 1], "reference", title="random guessing")
    for k in shown:
        curve = curves[k]
        if binary:
            chart.area(
                curve.x, [0.0] * len(curve.x), curve.y.tolist(), f"fill {colour_of(codes[k])}"
            )
        title = f"{curve.name}: area {curve.area:.3f}"
        chart.line(curve.x, curve.y, f"curve {colour_of(codes[k])}", title=title)
    if binary:
        chart.text(*_inside(chart, 0.97, 0.05), f"AUC {curves[0].area:.3f}", "figure", anchor="end")
    return chart.html()


def _precision_recall(
    curves: list[Curve], codes: list[int], shown: list[int], scored: Predictions, binary: bool
) -> Html:
    areas = ", ".join(f"{curves[k].name} {curves[k].area:.3f}" for k in shown)
    text = f"Precision over recall. Average precision: {areas}."
    chart = Chart(text, (0, 1), (0, 1.0), height=400, css="zoom")
    chart.axes("recall, %", "precision, %", percent=True)
    for k in shown:
        curve = curves[k]
        x, y = np.r_[0.0, curve.x], np.r_[curve.y[:1], curve.y]  # the first recall is not 0
        if binary:
            share = float((scored.truth == codes[k]).mean())
            chart.line([0, 1], [share, share], "reference", title="random guessing")
            chart.area(x, [0.0] * x.size, y.tolist(), f"fill {colour_of(codes[k])}")
        title = f"{curve.name}: average precision {curve.area:.3f}"
        chart.line(x, y, f"curve {colour_of(codes[k])}", title=title)
    if binary:
        words = f"average precision {curves[0].area:.3f}"
        chart.text(*_inside(chart, 0.97, 0.05), words, "figure", anchor="end")
    return chart.html()


def _calibration(bins: list[Bin], scored: Predictions, binary: bool) -> Html:
    words = "; ".join(f"{100 * one.mean:.0f} % predicted, {one.share.percent()}" for one in bins)
    chart = Chart(f"Calibration. {words}.", (0, 1), (0, 1), height=400, css="zoom")
    what = (
        f"probability of {scored.classes[1]}, %" if binary else "probability of the prediction, %"
    )
    chart.axes(what, "observed, %", percent=True)
    chart.line([0, 1], [0, 1], "reference", title="perfect calibration")
    for one in bins:
        if one.share.low is not None and one.share.high is not None:
            chart.line([one.mean] * 2, [one.share.low, one.share.high], "whisker")
    means = np.array([one.mean for one in bins])
    shares = np.array([one.share.value or 0.0 for one in bins])
    chart.line(means, shares, "curve thin c0")
    chart.dots(
        means,
        shares,
        css=["dot c0"] * len(bins),
        titles=[
            f"mean probability {100 * one.mean:.1f} %; observed {one.share.percent()};"
            f" {one.n} samples"
            for one in bins
        ],
        radius=5,
    )
    return chart.html()


def _inside(chart: Chart, x: float, y: float) -> tuple[float, float]:
    across, down = chart.at(x, y)
    return float(across), float(down)
