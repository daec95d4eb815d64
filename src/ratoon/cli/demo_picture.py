"""The picture of `ratoon demo`: learning curves, accuracies, and a large network in figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ratoon.cli.output import save_picture
from ratoon.cli.terminal import count, megabytes

METHOD_NAMES = {"SET": "SET", "static": "static", "default": "ratoon's\ndefault", "ridge": "ridge"}


def draw(trials: Sequence[Any], large: dict[str, Any], methods: Sequence[str], path: Path) -> None:
    """Draw learning curves, held-out accuracies and the figures of the large network."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with mpl.rc_context({"font.size": 10, "axes.titlesize": 11.5, "axes.titleweight": "bold"}):
        layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08)
        figure = Figure(figsize=(13.2, 4.8), layout=layout)
        curves, dots, table = figure.subplots(1, 3, width_ratios=(1.45, 1.15, 0.9))
        _draw_curves(trials, curves)
        _draw_accuracies(trials, methods, dots)
        _draw_large(large, table)
        save_picture(figure, path, dpi=150)


def _colours() -> dict[str, str]:
    from ratoon.report.style import BLUE, GREEN, GREY, ORANGE

    return {"SET": BLUE, "static": ORANGE, "default": GREEN, "ridge": GREY}


def _draw_curves(trials: Sequence[Any], axes: Any) -> None:
    from ratoon.report.style import tidy

    for name in ("SET", "static"):
        curves = 100 * np.array([trial.curves[name] for trial in trials])
        epochs = np.arange(1, curves.shape[1] + 1)
        colour = _colours()[name]
        mean = curves.mean(axis=0)
        if len(curves) > 1:
            error = curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
            axes.fill_between(
                epochs, mean - error, mean + error, color=colour, alpha=0.18, linewidth=0
            )
        axes.plot(epochs, mean, color=colour, linewidth=2.0)
        axes.annotate(
            f"  {name}",
            (epochs[-1], mean[-1]),
            color=colour,
            va="center",
            weight="bold",
            annotation_clip=False,
        )
    connections = trials[0].network.network_.n_connections
    axes.set_title(f"{connections:,} connections, with and without rewiring", loc="left")
    axes.set_xlabel("epoch")
    axes.set_ylabel("held-out accuracy in %")
    axes.set_xlim(1, max(2, len(trials[0].curves["SET"])))
    axes.margins(y=0.1)
    tidy(axes)
    _remark(axes, f"mean of {count(len(trials), 'split')}, shaded: standard error")


def _draw_accuracies(trials: Sequence[Any], methods: Sequence[str], axes: Any) -> None:
    from ratoon.report.style import tidy

    for place, name in enumerate(methods):
        scores = 100 * np.array([trial.accuracy[name] for trial in trials])
        colour = _colours()[name]
        axes.hlines(place, scores.min(), scores.max(), color=colour, linewidth=2, alpha=0.35)
        axes.scatter(scores, np.full(scores.size, place), s=22, color=colour, alpha=0.6)
        axes.scatter(scores.mean(), place, s=130, color=colour, zorder=3)
        axes.annotate(
            f"{scores.mean():.1f} %",
            (scores.mean(), place),
            xytext=(0, 10),
            textcoords="offset points",
            ha="center",
            weight="bold",
            color=colour,
        )
    axes.set_yticks(range(len(methods)), [METHOD_NAMES[name] for name in methods])
    axes.set_ylim(len(methods) - 0.5, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.set_title("Four methods on the same samples", loc="left")
    axes.set_xlabel("held-out accuracy in %")
    tidy(axes)
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x", color="0.9", linewidth=0.8)
    axes.spines["left"].set_visible(False)
    _remark(axes, "large dots: means; small dots: splits; generated data")


def _draw_large(large: dict[str, Any], axes: Any) -> None:
    axes.set_axis_off()
    axes.set_title(f"{large['hidden_neurons']:,} hidden neurons", loc="left")
    rows = [
        ("connections", f"{large['connections'] / 1e6:.1f} million"),
        ("memory of the network", megabytes(large["network_bytes"])),
        ("dense weights would be", megabytes(large["dense_weight_bytes"])),
        ("built in", f"{large['build_seconds']:.1f} s"),
        ("one training step", f"{large['step_seconds']:.2f} s"),
        (f"{large['replaced'] / 1e6:.1f} million rewired in", f"{large['rewire_seconds']:.1f} s"),
        (f"saved ({megabytes(large['file_bytes'])}) in", f"{large['save_seconds']:.1f} s"),
    ]
    for place, (name, value) in enumerate(rows):
        height = 0.93 - place * 0.14
        axes.text(0.0, height, name, transform=axes.transAxes, color="0.35", va="center")
        axes.text(
            1.0,
            height,
            value,
            transform=axes.transAxes,
            ha="right",
            va="center",
            weight="bold",
        )
        axes.plot([0, 1], [height - 0.07] * 2, transform=axes.transAxes, color="0.9", linewidth=1)
    axes.set_xlim(0, 1)


def _remark(axes: Any, text: str) -> None:
    axes.annotate(
        text,
        (0, 0),
        xycoords="axes fraction",
        xytext=(0, -44),
        textcoords="offset points",
        fontsize=8,
        color="0.4",
    )
