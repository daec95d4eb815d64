"""Maps of the samples: principal components of the inputs and of the last hidden layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon.report.context import CROSS_VALIDATED, TRAINING, ReportContext
from ratoon.report.svg import Chart, Html, colour_of
from ratoon.report.views import (
    MOST_POINTS,
    MOST_VALUES,
    Plane,
    Shown,
    hidden_activations,
    principal_plane,
    scaled_inputs,
    shown_samples,
)

_CROWD = 300


def build(context: ReportContext) -> dict[str, Any] | None:
    """Return one or two charts, their legend and what they show."""
    network = context.estimator.network_
    figures = []
    shown = _samples(context, network.widths[0])
    if shown is None or shown.n < 3:
        return None
    fit_on = shown.is_training if shown.has_both and shown.is_training.sum() >= 3 else None
    plane = principal_plane(scaled_inputs(network, shown.X), fit_on)
    if plane is not None:
        text = "Principal components of the standardised features"
        figures.append({"svg": _chart(text, shown, plane), "caption": text})
    widest = max(network.widths[0] if not _is_sparse(shown) else 1, network.widths[-2])
    again = shown if widest <= network.widths[0] else _samples(context, widest)
    if len(network.layers) > 1 and again is not None and again.n >= 3:
        z = hidden_activations(network, again.X)
        fit_on = again.is_training if again.has_both and again.is_training.sum() >= 3 else None
        plane = None if z is None else principal_plane(z, fit_on)
        if plane is not None:
            text = "Principal components of the last hidden layer"
            figures.append({"svg": _chart(text, again, plane), "caption": text})
    if not figures:
        return None
    return {
        "figures": figures,
        "legend": [
            {"code": code, "css": colour_of(code), "name": name}
            for code, name in enumerate(shown.classes)
        ],
        "has_both": shown.has_both,
        "has_wrong": bool(shown.wrong.any()),
        "n": shown.n,
        "n_total": shown.n_total,
        "fitted": context.basis in (CROSS_VALIDATED, TRAINING) or shown.has_both,
        "is_number": shown.y is not None and not shown.classes,
    }


def _is_sparse(shown: Shown) -> bool:
    return hasattr(shown.X, "tocsr")


def _samples(context: ReportContext, width: int) -> Shown | None:
    """Return as many samples as fit into the memory of a map of this width."""
    sparse = context.data is not None and context.data.is_sparse
    most = MOST_POINTS if sparse and width == context.estimator.network_.widths[0] else 0
    return shown_samples(context, most or min(MOST_POINTS, max(MOST_VALUES // width, 3)))


def _chart(description: str, shown: Shown, plane: Plane) -> Html:
    (x, y), shares = plane.places.T, plane.explained
    chart = Chart(
        f"{description} of {shown.n} samples.",
        _range(x),
        _range(y),
        height=400,
        margins=(30, 14, 14, 34),
        css="zoom plane" if shown.n <= _CROWD else "zoom plane crowded",
    )
    left, right, top, bottom = chart.margins
    chart.parts.append(
        f'<rect class="frame" x="{left}" y="{top}" width="{chart.width - left - right}"'
        f' height="{chart.height - top - bottom}"/>'
    )
    middle = (left + chart.width - right) / 2
    first, second = (f"component {k + 1} ({100 * shares[k]:.0f} %)" for k in range(2))
    chart.text(middle, chart.height - 12, first, "label", anchor="middle")
    height = (top + chart.height - bottom) / 2
    chart.text(
        18, height, second, "label", anchor="middle", extra=f'transform="rotate(-90 18 {height})"'
    )
    order = np.argsort(shown.wrong, kind="stable")  # misclassified samples on top
    chart.dots(
        x[order],
        y[order],
        css=[_css(shown, row) for row in order.tolist()],
        titles=[_title(shown, row) for row in order.tolist()],
        keys=shown.keys[order],
        fills=None if shown.classes or shown.y is None else _fills(shown.y[order]),
        radius=5 if shown.n <= _CROWD else 3,
    )
    return chart.html()


def _range(values: Any) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    slack = 0.05 * (high - low) or 1.0
    return low - slack, high + slack


def _css(shown: Shown, row: int) -> str:
    parts = ["dot"]
    if shown.classes and shown.y is not None:
        parts.append(colour_of(int(shown.y[row])))
        if int(shown.y[row]) >= 10:
            parts.append("second")
    if shown.has_both and shown.is_training[row]:
        parts.append("hollow")
    if shown.wrong[row]:
        parts.append("wrong")
    return " ".join(parts)


def _title(shown: Shown, row: int) -> str:
    text = shown.names[row]
    if shown.y is not None:
        label = shown.classes[int(shown.y[row])] if shown.classes else f"{shown.y[row]:.4g}"
        text += f": {label}"
    if shown.has_both:
        text += ", training" if shown.is_training[row] else ", not used for training"
    return text + (", misclassified" if shown.wrong[row] else "")


def _fills(values: Any) -> list[str]:
    """Return colours of numbers."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    low, high = float(values.min()), float(values.max())
    shares = (values - low) / ((high - low) or 1.0)
    return [to_hex(colormaps["viridis"](float(share))) for share in shares]
