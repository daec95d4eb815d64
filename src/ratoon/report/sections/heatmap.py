"""Heat map of the strongest features and the samples, both clustered."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import dendrogram, linkage

from ratoon.arrays import Array
from ratoon.report.context import ReportContext
from ratoon.report.sections.genes import ranking
from ratoon.report.svg import Chart, Html, colour_of, number, shortened
from ratoon.report.views import Shown, shown_samples
from ratoon.samples.in_memory import wrap

MOST_SAMPLES = 400
MOST_FEATURES = 40
LARGEST_Z = 3.0
_NAMES_FIT = 60  # names of samples are written below the heat map up to this number
_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 960.0, 70.0, 150.0, 74.0, 14.0
_ROW = 15.0


def build(context: ReportContext) -> dict[str, Any] | None:
    """Return the drawing and the values that the script shows."""
    _, features = ranking(context, MOST_FEATURES)
    shown = shown_samples(context, MOST_SAMPLES)
    if shown is None or shown.n < 3 or features.size < 2:
        return None
    z = z_scores(wrap(shown.X[:, features]).dense(), shown.is_training if shown.has_both else None)
    by_feature, by_sample = _clustered(z.T), _clustered(z)
    rows, columns = np.array(by_feature["leaves"]), np.array(by_sample["leaves"])
    z = z[np.ix_(columns, rows)].T
    names = [context.feature_name(int(j)) for j in features[rows]]
    return {
        "svg": _drawing(z, names, shown, columns, by_feature, by_sample),
        "legend": _legend(),
        "n_features": int(features.size),
        "n": shown.n,
        "n_total": shown.n_total,
        "has_classes": bool(shown.classes) and shown.y is not None,
        "classes": [
            {"code": code, "css": colour_of(code), "name": name}
            for code, name in enumerate(shown.classes)
        ],
        "has_both": shown.has_both,
        "block": {
            "features": names,
            "samples": [shown.names[k] for k in columns],
            "classes": _labels(shown, columns),
            # Hundredths fit into few characters.
            "z": np.rint(100 * z).astype(int).tolist(),
        },
    }


def z_scores(x: Array, fit_on: Array | None = None) -> Array:
    """Return features standardised over the samples, or some of them, cut off at 3.

    Examples
    --------
    >>> z_scores(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    values = np.asarray(x, dtype=np.float64)
    fitted = values if fit_on is None or fit_on.sum() < 2 else values[fit_on]
    spread = fitted.std(axis=0)
    z = (values - fitted.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.asarray(np.clip(z, -LARGEST_Z, LARGEST_Z))


def _clustered(rows: Array) -> dict[str, Any]:
    """Return the dendrogram of average linkage by correlation, or by distance if there is none."""
    spread = rows.std(axis=1)
    metric = "correlation" if rows.shape[1] > 2 and (spread > 1e-9).all() else "euclidean"
    tree = linkage(rows, method="average", metric=metric, optimal_ordering=len(rows) <= 400)
    found: dict[str, Any] = dendrogram(tree, no_plot=True)
    return found


def _labels(shown: Shown, columns: Array) -> list[str]:
    if shown.y is None:
        return []
    if shown.classes:
        return [shown.classes[int(code)] for code in shown.y[columns]]
    return [f"{value:.4g}" for value in shown.y[columns]]


def _drawing(
    z: Array,
    names: list[str],
    shown: Shown,
    columns: Array,
    by_feature: dict[str, Any],
    by_sample: dict[str, Any],
) -> Html:
    n_rows, n_columns = z.shape
    has_names = n_columns <= _NAMES_FIT
    bottom = _BOTTOM + (76.0 if has_names else 0.0)
    height = _TOP + _ROW * n_rows + bottom
    chart = Chart(
        f"Heat map of {n_rows} features and {n_columns} samples, both clustered.",
        (0, n_columns),
        (n_rows, 0),
        width=_WIDTH,
        height=height,
        margins=(_LEFT, _RIGHT, _TOP, bottom),
        css="heat",
    )
    wide, high = _WIDTH - _LEFT - _RIGHT, _ROW * n_rows
    chart.parts.append(
        f'<image class="cells" x="{_LEFT}" y="{_TOP}" width="{wide}" height="{high}"'
        f' preserveAspectRatio="none" href="data:image/png;base64,{_png(z)}"/>'
        f'<rect class="cross" x="0" y="0" width="0" height="0"/>'
    )
    each = wide / n_columns
    if shown.y is not None:
        for place, row in enumerate(columns.tolist()):
            css, fill = _class_mark(shown, row)
            chart.parts.append(
                f'<rect class="mark {css}" x="{number(_LEFT + place * each)}" y="{_TOP - 15}"'
                f' width="{number(each + 0.3)}" height="11"{fill}/>'
            )
    for place, name in enumerate(names):
        down = _TOP + (place + 0.5) * _ROW + 4
        chart.text(_WIDTH - _RIGHT + 6, down, shortened(name, 22), "tick")
    if has_names:
        for place, row in enumerate(columns.tolist()):
            across = _LEFT + (place + 0.5) * each + 3
            turned = f'transform="rotate(-60 {number(across)} {number(_TOP + high + 10)})"'
            name = shortened(shown.names[row], 14)
            chart.text(across, _TOP + high + 10, name, "tick", anchor="end", extra=turned)
    _sample_tree(chart, by_sample, each)
    _feature_tree(chart, by_feature)
    return chart.html()


def _class_mark(shown: Shown, row: int) -> tuple[str, str]:
    assert shown.y is not None
    if shown.classes:
        return colour_of(int(shown.y[row])), ""
    from ratoon.report.sections.maps import _fills

    return "", f' style="fill:{_fills(shown.y)[row]}"'


def _sample_tree(chart: Chart, tree: dict[str, Any], each: float) -> None:
    """Draw the branches above the columns; a leaf is at 5, 15, 25, ..."""
    largest = max(max(heights) for heights in tree["dcoord"]) or 1.0
    room = _TOP - 24
    for places, heights in zip(tree["icoord"], tree["dcoord"], strict=True):
        points = " ".join(
            f"{number(_LEFT + place / 10 * each)},{number(4 + room * (1 - height / largest))}"
            for place, height in zip(places, heights, strict=True)
        )
        chart.parts.append(f'<polyline class="branch" points="{points}"/>')


def _feature_tree(chart: Chart, tree: dict[str, Any]) -> None:
    largest = max(max(heights) for heights in tree["dcoord"]) or 1.0
    room = _LEFT - 8
    for places, heights in zip(tree["icoord"], tree["dcoord"], strict=True):
        points = " ".join(
            f"{number(4 + room * (1 - height / largest))},{number(_TOP + place / 10 * _ROW)}"
            for place, height in zip(places, heights, strict=True)
        )
        chart.parts.append(f'<polyline class="branch" points="{points}"/>')


def _colours(z: Array) -> Array:
    """Return colours from blue through white to red as bytes."""
    from matplotlib import colormaps

    found: Array = colormaps["RdBu_r"](0.5 + 0.5 * z / LARGEST_Z, bytes=True)
    return found[..., :3]


def _png(z: Array) -> str:
    """Return an image with one pixel per value, as base64."""
    from matplotlib.image import imsave

    content = BytesIO()
    imsave(content, _colours(z), format="png")
    return base64.b64encode(content.getvalue()).decode()


def _legend() -> Html:
    """Return the scale of colours."""
    chart = Chart("Colours from -3 to 3 standard deviations.", (0, 1), (0, 1), 220, 30, css="scale")
    for step, (r, g, b) in enumerate(_colours(np.linspace(-LARGEST_Z, LARGEST_Z, 40)).tolist()):
        chart.parts.append(
            f'<rect x="{10 + 5 * step}" y="2" width="5.2" height="10" fill="rgb({r},{g},{b})"/>'
        )
    for across, text in ((10, "-3"), (110, "0"), (210, "+3")):
        chart.text(across, 26, text, "tick", anchor="middle")
    return chart.html()
