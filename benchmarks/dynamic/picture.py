"""The picture: test accuracy against CPU seconds of training, one line per method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from dynamic.cells import DENSE
from dynamic.lines import Line

mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "ratoon", "font.size": 9})

COLOURS = {
    "static": "#000000",
    "set": "#e69f00",
    "annealed_set": "#b8860b",
    "rigl": "#d55e00",
    "gse": "#cc79a7",
    "snfs": "#882255",
    "mest": "#56b4e9",
    "granet": "#0072b2",
    "srigl": "#44aa99",
    "cht": "#009e73",
    "chts": "#117733",
    "dsr": "#999933",
    "deep_r": "#6f6f9f",
    DENSE: "#9a9a9a",
}
NAMES = {
    "static": "static",
    "set": "SET",
    "annealed_set": "SET, annealed",
    "rigl": "RigL",
    "gse": "GSE",
    "snfs": "SNFS",
    "mest": "MEST",
    "granet": "GraNet",
    "srigl": "SRigL",
    "cht": "CHT",
    "chts": "CHTs",
    "dsr": "DSR",
    "deep_r": "DEEP R",
    DENSE: "dense PyTorch",
}


def spread(wanted: Sequence[float], gap: float) -> list[float]:
    """Return ascending places at least ``gap`` apart, near those wanted, which ascend.

    >>> spread([0.0, 0.1, 5.0], 1.0)
    [-0.45, 0.55, 5.0]
    """
    groups: list[list[float]] = []  # [first place, number of members, sum of wanted first places]
    for place in wanted:
        groups.append([place, 1, place])
        while len(groups) > 1 and groups[-2][0] + groups[-2][1] * gap > groups[-1][0]:
            _, size, total = groups.pop()
            before = groups[-1]
            before[2] += total - size * before[1] * gap
            before[1] += size
            before[0] = before[2] / before[1]
    return [
        round(first + index * gap, 9) for first, size, _ in groups for index in range(int(size))
    ]


def panel(ax: Any, title: str, lines: Sequence[tuple[str, Line]], *, low: float) -> None:
    """Draw the lines of one set, with a label at the end of each.

    ``low`` is the lowest accuracy that is shown, in per cent.
    """
    ends = []
    for label, line in lines:
        seconds, accuracy = line.curve()
        is_dense = line.method == DENSE
        is_long = "\n" in label
        ax.plot(
            seconds,
            100 * accuracy,
            color=COLOURS[line.method],
            linewidth=3.0 if is_dense else 2.4 if is_long else 1.3,
            solid_capstyle="round",
            zorder=1 if is_dense else 3,
            marker="o" if is_dense else None,
            markersize=3,
        )
        ax.plot(seconds[-1], 100 * accuracy[-1], "o", color=COLOURS[line.method], markersize=4)
        if not (is_dense or is_long):
            ends.append((100 * accuracy[-1], seconds[-1], label, line.method))
        else:
            ax.annotate(
                label,
                (seconds[-1], 100 * accuracy[-1]),
                xytext=(0, 7),
                textcoords="offset points",
                ha="right" if is_dense else "center",
                va="bottom",
                color=COLOURS[line.method] if not is_dense else "#707070",
                fontweight="bold",
                fontsize=8.5,
            )
    ends.sort(key=lambda end: end[0])
    top = ax.get_ylim()[1]
    top += 0.13 * (top - low)
    ax.set_ylim(low, top)
    ax.set_xscale("log")
    latest = max((seconds for _, seconds, _, _ in ends), default=1.0)
    # Labels are a line of text apart, and all within the panel.
    gap = (top - low) / 24
    places = spread([end[0] for end in ends], gap)
    if places and places[0] < low + gap / 2:
        places = [place + low + gap / 2 - places[0] for place in places]
    for (accuracy, seconds, label, method), place in zip(ends, places, strict=True):
        ax.annotate(
            label,
            (seconds, accuracy),
            xytext=(1.5 * latest, place),
            textcoords="data",
            va="center",
            color=COLOURS[method],
            fontsize=8,
            arrowprops={
                "arrowstyle": "-",
                "color": COLOURS[method],
                "linewidth": 0.5,
                "shrinkA": 0,
                "shrinkB": 2,
            },
        )
    ax.set_title(title, loc="left", fontsize=10)
    ax.set_xlabel("CPU seconds of training, one thread")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.grid(color="#e6e6e6", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def draw(panels: dict[str, tuple[list[tuple[str, Line]], float]], path: Path) -> None:
    """Draw one panel per title, with the lines of it and the lowest accuracy shown."""
    figure = Figure(figsize=(5.3 * len(panels), 4.6), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)
    for ax, (title, (lines, low)) in zip(axes[0], panels.items(), strict=True):
        panel(ax, title, lines, low=low)
    axes[0, 0].set_ylabel("test accuracy, %")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, facecolor="white", metadata={"Date": None})
