"""Kaplan-Meier curves of samples by predicted risk."""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon.arrays import Array
from ratoon.metrics import SurvivalScores
from ratoon.report.context import CROSS_VALIDATED, ReportContext
from ratoon.report.survival import KaplanMeierDisplay
from ratoon.report.svg import Chart, Html, colour_of, tick_values

FEWEST_FOR_THREE = 30
"""With fewer samples there are two groups."""


def build(context: ReportContext) -> dict[str, Any] | None:
    """Return the curves and the risk groups of the samples that the scores describe."""
    data, scored, scores = context.data, context.scored, context.scores
    if data is None or scored is None or not isinstance(scores, SurvivalScores):
        return None
    assert scored.events is not None
    if not scored.events.any():
        return None
    naming = data.naming
    display = KaplanMeierDisplay.from_risks(
        scored.events,
        scored.truth,
        scored.consensus(),
        n_groups=3 if scored.n_samples >= FEWEST_FOR_THREE else 2,
        time_name=naming.time if naming is not None and naming.time else "time",
    )
    ticks = [tick for tick in tick_values(0.0, display.last) if tick <= display.last]
    return {
        "picture": _chart(display, ticks),
        "legend": [
            {"css": colour_of(code), "name": name} for code, name in enumerate(display.curves)
        ],
        "time": display.time_name,
        "ticks": [f"{tick:.4g}" for tick in ticks],
        "rows": [
            {
                "name": name,
                "samples": curve.n_samples,
                "events": curve.n_events,
                "median": "not reached" if curve.median is None else f"{curve.median:.4g}",
                "at_risk": _at_risk(_of_group(scored, display, name), ticks),
            }
            for name, curve in display.curves.items()
        ],
        "p": "below 0.001" if display.p_value < 0.001 else f"{display.p_value:.3f}",
        "n_repeats": scored.n_repeats,
        "is_cross_validated": context.basis == CROSS_VALIDATED,
    }


def _of_group(scored: Any, display: KaplanMeierDisplay, name: str) -> Array:
    """Return the times of the samples of a group."""
    assert display.groups is not None
    return np.asarray(scored.truth[display.groups == name])


def _at_risk(times: Array, ticks: list[float]) -> list[int]:
    """Return how many samples are still under observation at each tick."""
    return [int((times >= tick).sum()) for tick in ticks]


def _chart(display: KaplanMeierDisplay, ticks: list[float]) -> Html:
    described = "; ".join(
        f"{name}: {curve.n_events} events in {curve.n_samples} samples"
        for name, curve in display.curves.items()
    )
    chart = Chart(
        f"Kaplan-Meier curves. {described}.",
        (0.0, display.last or 1.0),
        (0.0, 1.0),
        width=640,
        height=400,
        css="zoom",
    )
    chart.axes(display.time_name, "without event, %", x_ticks=ticks, y_percent=True)
    for code, (name, curve) in enumerate(display.curves.items()):
        times = np.concatenate([[0.0], curve.times, [curve.last]])
        low, middle, high = (
            np.concatenate([[1.0], values, values[-1:] if values.size else [1.0]])
            for values in (curve.low, curve.survival, np.nan_to_num(curve.high))
        )
        x = np.repeat(times, 2)[1:]
        chart.area(x, _steps(low), _steps(high), f"fill {colour_of(code)}")
        title = f"{name}: {curve.n_samples} samples, {curve.n_events} events"
        chart.line(x, _steps(middle), f"curve {colour_of(code)}", title=title)
    return chart.html()


def _steps(values: Array) -> Any:
    """Return the values at the corners of a line that changes in steps."""
    return np.repeat(values, 2)[:-1]
