"""Colours and axes that all pictures share; readable with any colour vision, on light and dark."""

from __future__ import annotations

from typing import Any

# Of the Okabe-Ito palette, which is told apart with all common kinds of colour vision.
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#7F7F7F"
CYCLE = (BLUE, ORANGE, GREEN, RED, "#CC79A7", "#56B4E9", GREY)


def new_axes(ax: Any | None, *, figsize: tuple[float, float] = (6.0, 4.0)) -> tuple[Any, Any]:
    """Return figure and axes: those given, or new ones."""
    if ax is not None:
        return ax.figure, ax
    from matplotlib import pyplot

    return pyplot.subplots(figsize=figsize, layout="constrained")


def tidy(ax: Any) -> None:
    """Take away what carries no information."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
