"""Pictures of `ratoon reproduce`: curves, matrices, and bars of connections and seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def draw(found: Any, stem: Path) -> list[Path]:
    """Draw what a table has to draw; return the files written."""
    from matplotlib.figure import Figure

    written = []
    for name, size, plot in _pictures(found):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        plot(axes)
        title = f"{found.title}\n{_told(found, name)}".rstrip()
        axes.set_title(title, loc="left", fontsize=10, pad=22)
        path = stem.with_name(f"{stem.name}-{name}.png" if name else f"{stem.name}.png")
        figure.savefig(path, dpi=120)
        written.append(path)
    return written


def _told(found: Any, name: str) -> str:
    """Say what a picture was computed on: a stand-in must not be taken for the real set."""
    if name in found.kinds:
        kind = found.kinds[name]
        return name if kind == name else f"{name}: {kind}"
    kinds = set(found.kinds.values()) - set(found.kinds)
    return ", ".join(part for part in (name, *sorted(kinds)) if part)


def _pictures(found: Any) -> list[tuple[str, tuple[float, float], Any]]:
    from ratoon.report import (
        ConfusionMatrixDisplay,
        ConnectionCountDisplay,
        LearningCurveDisplay,
    )

    pictures: list[tuple[str, tuple[float, float], Any]] = []
    for name, curves in found.curves.items():
        shown = LearningCurveDisplay(curves, ylabel="test accuracy")
        pictures.append((name, (7.0, 4.6), shown.plot))
    for name, (truth, predicted, names) in found.confusion.items():
        matrix = ConfusionMatrixDisplay.from_predictions(truth, predicted, class_names=names)
        side = 9.0 if len(names) > 8 else 4.6
        pictures.append((name, (max(6.4, side), side), matrix.plot))
    if found.counts:
        size = (6.8, 1.4 + 0.7 * len(found.counts))
        pictures.append(("", size, ConnectionCountDisplay(found.counts).plot))
    if found.seconds:
        n_bars = sum(len(bars) for bars in found.seconds.values())
        pictures.append(
            ("" if not found.curves else "seconds", (6.8, 1.6 + 0.3 * n_bars), _bars(found.seconds))
        )
    return pictures


def _bars(seconds: dict[str, dict[str, float]]) -> Any:
    """Return what draws one group of bars per entry, on a logarithmic axis."""
    from ratoon.report.style import CYCLE, tidy

    def plot(axes: Any) -> None:
        names = list(next(iter(seconds.values())))
        places = np.arange(len(seconds))
        height = 0.84 / len(names)
        for number, name in enumerate(names):
            values = [bars[name] for bars in seconds.values()]
            shift = (number - (len(names) - 1) / 2) * height
            drawn = axes.barh(
                places + shift, values, height=0.88 * height, color=CYCLE[number], label=name
            )
            axes.bar_label(drawn, [f"{value:.3g}" for value in values], padding=3, fontsize=8)
        axes.set_xscale("log")
        every = [value for bars in seconds.values() for value in bars.values()]
        axes.set_xlim(min(every) / 3, max(every) * 8)  # room for the numbers
        axes.set_yticks(places, list(seconds))
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("seconds")
        tidy(axes)
        axes.grid(visible=False)
        axes.legend(
            frameon=False, ncols=len(names), fontsize=8, loc="lower right", bbox_to_anchor=(1, 1)
        )

    return plot
