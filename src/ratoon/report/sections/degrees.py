"""Degree distributions of the layers."""

from __future__ import annotations

from typing import Any

from ratoon.report.context import ReportContext
from ratoon.report.layers import DegreeDisplay
from ratoon.report.style import inline_svg


def build(context: ReportContext) -> dict[str, Any]:
    """Return one picture per layer, and the layers in which all degrees are equal."""
    pictures, uniform = [], []
    for index in range(len(context.estimator.network_.layers)):
        degrees = DegreeDisplay.from_estimator(context.estimator, layer=index)
        if degrees.is_uniform:  # for example a full layer
            uniform.append(index + 1)
            continue
        picture = inline_svg(
            degrees,
            f"Fraction of neurons of layer {index + 1} by their number of connections.",
            salt=f"degree{index}",
            size=(5.2, 3.3),
        )
        pictures.append((index + 1, picture))
    return {"pictures": pictures, "uniform": uniform}
