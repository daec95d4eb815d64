"""Style of all pictures: colours, axes, and SVG that follows the colours of the page."""

from __future__ import annotations

import re
from html import escape
from io import BytesIO, StringIO
from typing import Any

from ratoon.datasets.optional import require
from ratoon.report.svg import Html

# From the Okabe-Ito palette, which is distinguishable with all common kinds of colour vision.
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#7F7F7F"
CYCLE = (BLUE, ORANGE, GREEN, RED, "#CC79A7", "#56B4E9", GREY)


def new_axes(ax: Any | None, *, figsize: tuple[float, float] = (6.0, 4.0)) -> tuple[Any, Any]:
    """Return the given axes and their figure, or new ones."""
    if ax is not None:
        return ax.figure, ax
    from matplotlib import pyplot

    return pyplot.subplots(figsize=figsize, layout="constrained")


def literal(name: str) -> str:
    r"""Return a name as text that Matplotlib draws unchanged, not as a formula.

    Examples
    --------
    >>> literal("$x_1$")
    '\\$x_1\\$'
    """
    return name.replace("$", r"\$")


def tidy(ax: Any) -> None:
    """Remove the top and right spines and add a light grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)


# Placeholder colours that no picture uses otherwise; they are replaced by those of the page.
_INK, _GRID = "#102938", "#e6e6e6"
_COLOURS = {_INK: "currentColor", _GRID: "var(--grid)", "#0072b2": "var(--blue)"}
_RC: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 10,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
}
_ID = re.compile(r' id="[A-Za-z0-9.]+_\d+"')


def inline_svg(display: Any, description: str, *, salt: str, size: tuple[float, float]) -> Html:
    """Return the drawing of a display as SVG for an HTML page.

    Parameters
    ----------
    display : display
        Anything with ``plot(ax)``.
    description : str
        Alternative text.
    salt : str
        Unique for every picture of a page, so that identifiers do not collide.
    size : tuple of float
        Width and height in inches.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({**_RC, "svg.hashsalt": salt}):
        figure = Figure(figsize=size, layout="constrained")
        display.plot(figure.subplots())
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = _ID.sub("", svg)
    for placeholder, colour in _COLOURS.items():
        svg = svg.replace(placeholder, colour)
    svg = re.sub(r"font: ([^;\"]*?)px [^;\"]*", r"font: \1px var(--font)", svg)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    return Html(svg.replace("<svg", f'<svg role="img" aria-label="{escape(description)}"', 1))


def picture_formats() -> tuple[str, ...]:
    """Return the formats that pictures can be written in; raise without matplotlib."""
    require("matplotlib", "to draw pictures")
    from matplotlib.backend_bases import FigureCanvasBase

    return tuple(FigureCanvasBase.get_supported_filetypes())


def picture_bytes(figure: Any, suffix: str, *, dpi: int) -> bytes:
    """Return a figure as the content of a file with this suffix."""
    content = BytesIO()
    figure.savefig(content, format=suffix.lower().removeprefix("."), dpi=dpi)
    return content.getvalue()
