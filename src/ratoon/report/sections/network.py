"""The layers of the network, compared with those of a dense one."""

from __future__ import annotations

from typing import Any

from ratoon.report.context import ReportContext
from ratoon.report.layers import ConnectionCountDisplay
from ratoon.report.style import inline_svg


def build(context: ReportContext) -> dict[str, Any]:
    """Return one row per layer, totals, and a picture."""
    estimator = context.estimator
    report = estimator.report_
    counts = ConnectionCountDisplay.from_estimator(estimator)
    description = "; ".join(f"{name} {a:,} of {b:,}" for name, (a, b) in counts.counts.items())
    size = (5.2, 1.0 + 0.62 * len(counts.counts))
    return {
        "layers": layer_rows(estimator),
        "connections": f"{report.n_connections:,}",
        "neurons": f"{sum(estimator.network_.widths):,}",
        "positions": f"{report.n_positions:,}",
        "density": f"{100 * report.n_connections / report.n_positions:.3g} %",
        "dtype": report.dtype,
        "picture": inline_svg(counts, f"Connections: {description}.", salt="sizes", size=size),
    }


def layer_rows(estimator: Any) -> list[dict[str, Any]]:
    """Return one row per layer: shape, connections, requested and achieved density."""
    rows = []
    for number, layer in enumerate(estimator.report_.layers, start=1):
        requested = layer.requested_density
        rows.append(
            {
                "layer": number,
                "shape": f"{layer.n_in:,} → {layer.n_out:,}",
                "connections": f"{layer.n_connections:,}",
                "requested": "given" if requested is None else f"{100 * requested:.3g} %",
                "achieved": f"{100 * layer.achieved_density:.3g} %",
                "rewired": f"{layer.rewired:,}",
                "megabytes": f"{layer.megabytes:.2f}",
            }
        )
    return rows
