"""Pictures inside a page: SVG whose ink and grid follow the page's colours, light or dark."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any

# Stand-ins that no picture uses for anything else; the page puts its own colours there.
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


def inline_svg(display: Any, description: str, *, salt: str, size: tuple[float, float]) -> str:
    """Return what a display draws as SVG to stand in a page.

    Parameters
    ----------
    display : display
        Anything with ``plot(ax)``.
    description : str
        What the picture shows, for those who cannot see it.
    salt : str
        Different for every picture of a page, so that their inner names do not meet.
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
    for stand_in, colour in _COLOURS.items():
        svg = svg.replace(stand_in, colour)
    svg = re.sub(r"font: ([^;\"]*?)px [^;\"]*", r"font: \1px var(--font)", svg)
    svg = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1)
    return svg.replace("<svg", f'<svg role="img" aria-label="{_escaped(description)}"', 1)


def _escaped(text: str) -> str:
    from html import escape

    return escape(text, quote=True)
