"""Heat maps of what rewiring gains: one panel per strategy, and one line per real task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from quality.rewiring import SAMPLES, SIGNALS
from quality.rewiring_scores import SHOWN, Scores, gains, to_show

matplotlib.use("Agg")

import matplotlib.pyplot as plt

MOST, DARK = 20.0, 13.0
PICTURED = ("set", "rigl", "gse", "guided", "published")
"""Strategies with a panel of their own."""


def draw_generated(scores: Scores, path: Path) -> None:
    """Draw gains over the generated tasks, a panel for each of the strategies that differ most."""
    shown = {name: SHOWN[name] for name in PICTURED}
    figure, panels = plt.subplots(
        1, len(shown), figsize=(3.0 * len(shown), 3.4), sharey=True, layout="constrained"
    )
    for panel, (name, label) in zip(panels, shown.items(), strict=True):
        values = [[_mean(scores.get((kind, n), {}), name) for n in SAMPLES] for kind in SIGNALS]
        image = _heat(panel, np.array(values))
        panel.set_xticks(range(len(SAMPLES)), [f"{n:,}" for n in SAMPLES])
        panel.set_yticks(range(len(SIGNALS)), SIGNALS)
        panel.set_xlabel("samples")
        panel.set_title(f"{label} minus static", fontsize=10)
    figure.colorbar(image, ax=panels, label="points of accuracy", extend="both")
    _save(figure, path)


def draw_all(scores: Scores, path: Path) -> None:
    """Draw gains of all strategies: a line for each real task, and some generated ones above."""
    tasks = to_show(scores)
    figure, panel = plt.subplots(figsize=(13, 1.6 + 0.32 * len(tasks)), layout="constrained")
    values = np.array([[_mean(cell, name) for name in SHOWN] for cell in tasks.values()])
    image = _heat(panel, values)
    panel.set_xticks(range(len(SHOWN)), [label.replace(", ", ",\n") for label in SHOWN.values()])
    panel.set_yticks(range(len(tasks)), [f"{kind}, {n:,}" for kind, n in tasks])
    panel.xaxis.tick_top()
    panel.set_title("points of accuracy above static; task and samples; grey: not tried\n")
    figure.colorbar(image, ax=panel, extend="both")
    _save(figure, path)


def _mean(cell: dict[str, dict[int, float]], name: str) -> float:
    gain = gains(cell, name)
    return float(gain.mean()) if gain.size else float("nan")


def _heat(panel: Any, values: Any) -> Any:
    panel.set_facecolor("0.9")
    for (i, j), value in np.ndenumerate(values):
        if np.isfinite(value):
            colour = "white" if abs(value) > DARK else "black"
            panel.text(j, i, f"{value:+.1f}", ha="center", va="center", fontsize=8, color=colour)
    return panel.imshow(values, cmap="RdBu", vmin=-MOST, vmax=MOST, aspect="auto")


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)
