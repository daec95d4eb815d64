"""The picture of `ratoon demo`: learning curves, accuracies, and a large network in figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ratoon.cli.demo_digits import DENSITY, STRATEGIES, Digits
from ratoon.cli.output import save_picture
from ratoon.cli.terminal import count, megabytes

METHOD_NAMES = {
    "SET": "the paper's\nSET",
    "static": "the same,\nfixed",
    "default": "ratoon's\ndefault",
    "ridge": "ridge",
}


def draw(
    digits: Digits,
    trials: Sequence[Any],
    large: dict[str, Any],
    methods: Sequence[str],
    path: Path,
) -> None:
    """Draw learning curves, held-out accuracies and the figures of the large network."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    with mpl.rc_context({"font.size": 10, "axes.titlesize": 11.5, "axes.titleweight": "bold"}):
        layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08)
        figure = Figure(figsize=(13.2, 4.8), layout=layout)
        curves, dots, table = figure.subplots(1, 3, width_ratios=(1.45, 1.15, 0.9))
        _draw_curves(digits, curves)
        _draw_accuracies(trials, methods, dots)
        _draw_large(large, table)
        save_picture(figure, path, dpi=150)


def _colours() -> dict[str, str]:
    from ratoon.report.style import BLUE, GREEN, GREY, ORANGE

    return {"SET": BLUE, "static": ORANGE, "default": GREEN, "ridge": GREY}


def _draw_curves(digits: Digits, axes: Any) -> None:
    from ratoon.report.style import BLUE, GREEN, ORANGE, tidy

    for name, colour in zip(digits.curves, (ORANGE, GREEN, BLUE), strict=True):
        curves = 100 * np.array(digits.curves[name])
        epochs = np.arange(1, curves.shape[1] + 1)
        mean = curves.mean(axis=0)
        for curve in curves:
            axes.plot(epochs, curve, color=colour, linewidth=0.8, alpha=0.3)
        axes.plot(epochs, mean, color=colour, linewidth=2.0)
        axes.annotate(
            f"  {STRATEGIES[name]} {mean[-1]:.1f} %",
            (epochs[-1], mean[-1]),
            color=colour,
            va="center",
            weight="bold",
            annotation_clip=False,
        )
    axes.set_title(f"Digits, {100 * DENSITY:g} % of the connections: fixed or rewired", loc="left")
    axes.set_xlabel("epoch")
    axes.set_ylabel("held-out accuracy in %")
    axes.set_xlim(1, max(2, len(epochs)))
    lowest = 100 * min(digits.accuracy.values())
    axes.set_ylim(max(0.0, lowest - 20.0), 101.0)
    tidy(axes)
    _remark(
        axes,
        f"{digits.n_connections:,} connections (dense: {digits.n_positions:,}); thick: mean of"
        f" {count(len(curves), 'split')}",
    )


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
    axes.set_title("85 samples of 22,283 genes", loc="left")
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
