"""The picture: test accuracy against CPU seconds of training, one line per method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
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


LABEL_WIDTH = 3.5
"""The labels of short lines end at about this multiple of the seconds where they begin."""


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


def panel(ax: Any, title: str, lines: Sequence[tuple[str, Line]]) -> None:
    """Draw the lines of one set; labels of the short ones are in a column to the right of them.

    Lines of dense and of longer recipes are thick.  The labels are above them where they fit, and
    below them otherwise.
    """
    ends, thick_ends, highest = [], [], 0.0
    beside: list[float] = []  # accuracies of the thick lines where the labels are
    short = [line for _, line in lines if not is_thick(line, lines)]
    column = 1.4 * max(line.seconds for line in short)
    for label, line in lines:
        seconds, accuracy = line.curve()
        accuracy = 100 * accuracy
        end, highest = float(accuracy[-1]), max(highest, float(accuracy[-1]))
        colour, thick = COLOURS[line.method], is_thick(line, lines)
        width = 1.2 if not thick else 3.2 if line.method == DENSE else 2.4
        ax.plot(seconds, accuracy, color=colour, linewidth=width, zorder=2 if thick else 3)
        ax.plot(seconds[-1], end, "o", color=colour, markersize=3 + width / 2, zorder=3)
        if not thick:
            ends.append((end, float(seconds[-1]), label, colour))
            continue
        there = np.geomspace(column, LABEL_WIDTH * column, 20)
        there = there[(there >= seconds[0]) & (there <= seconds[-1])]
        beside += np.interp(there, seconds, accuracy).tolist()
        if line.method == DENSE:  # below its end; to the right there is no room
            style: dict[str, Any] = {"color": "#707070", "fontweight": "bold", "ha": "right"}
            ax.annotate(label, (seconds[-1], accuracy[0]), va="center", **style)
        else:
            thick_ends.append((end, float(seconds[-1]), label, colour))
    ends.sort(key=lambda one: one[0])
    low = min(ends[0][0], *(line.curve()[1][0] * 100 for _, line in lines if line.method == DENSE))
    low -= 1.0
    for _ in range(5):  # more labels below need a longer axis, and so a larger distance
        gap = (highest - low) / 24
        places = spread([one[0] for one in ends], gap)
        if places[0] - gap < max(beside, default=-np.inf):
            too_high = max(0.0, places[-1] + gap - min(beside))
            places = [place - too_high for place in places]
        low = min(low, places[0] - gap)
    for (end, seconds, label, colour), place in zip(ends, places, strict=True):
        ax.annotate(
            label,
            (seconds, end),
            xytext=(column, place),
            textcoords="data",
            va="center",
            color=colour,
            fontsize=8,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.5,
                "relpos": (0, 0.5),
                "shrinkA": 1,
            },
        )
    highest = max(highest, places[-1])
    ax.set_ylim(low, highest + 0.1 * (highest - low))
    thick_ends.sort()
    thick_places = spread([one[0] for one in thick_ends], gap)
    for (_, seconds, label, colour), place in zip(thick_ends, thick_places, strict=True):
        ax.annotate(
            label,
            (seconds, place),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontweight="bold",
        )
    ax.set_xscale("log")
    ax.set_title(title, loc="left", fontsize=10)
    ax.set_xlabel("CPU seconds of training, one thread")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.grid(color="#e6e6e6", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def is_thick(line: Line, lines: Sequence[tuple[str, Line]]) -> bool:
    """Whether a line is dense, or longer than the shortest of the sparse ones."""
    sparse = [one.recipe.epochs for _, one in lines if one.method != DENSE]
    return line.method == DENSE or line.recipe.epochs > min(sparse)


def label_of(line: Line, lines: Sequence[Line]) -> str:
    """Return method, what is special about a longer recipe, and accuracy."""
    text = NAMES[line.method]
    if is_thick(line, [("", one) for one in lines]) and line.method != DENSE:
        text += f", {line.recipe.epochs:g} epochs"
        if line.recipe.augment:
            text += ", changed images"
    return f"{text} {100 * line.accuracy:.1f}"


def draw(panels: dict[str, list[Line]], path: Path) -> None:
    """Draw one panel per title, with these lines."""
    width = 7.6 if len(panels) == 1 else 6.2 * len(panels)
    figure = Figure(figsize=(width, 4.8), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)
    for ax, (title, lines) in zip(axes[0], panels.items(), strict=True):
        panel(ax, title, [(label_of(line, lines), line) for line in lines])
    axes[0, 0].set_ylabel("test accuracy, %")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, facecolor="white", metadata={"Date": None})
