"""Charts as inline SVG: colours and fonts come from the page, details from hovering.

Every element may have a title, which browsers show when the mouse rests on it, also without
scripts.  Text is escaped here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np

from ratoon.arrays import Array

N_COLOURS = 10
"""Number of colours of classes in the style sheet; further classes repeat them."""


class Html(str):
    """Text that is markup: templates do not escape it."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


def colour_of(code: int) -> str:
    """Return the CSS class with the colour of a class of samples.

    Examples
    --------
    >>> colour_of(0), colour_of(12)
    ('c0', 'c2')
    """
    return f"c{code % N_COLOURS}"


def number(value: float) -> str:
    """Return a coordinate as short text.

    Examples
    --------
    >>> number(1.0), number(2.346)
    ('1', '2.35')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def plain(value: float) -> str:
    """Return a number with three digits, and whole numbers from 1,000 to 10 million in full.

    Examples
    --------
    >>> plain(0.012345), plain(1234.5), plain(-1e9)
    ('0.0123', '1,234', '-1e+09')
    """
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e7 else f"{value:.3g}"


def tick_values(low: float, high: float, n: int = 5) -> list[float]:
    """Return round numbers for the ticks of an axis.

    Examples
    --------
    >>> tick_values(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    from matplotlib.ticker import MaxNLocator

    ticks = MaxNLocator(n, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    slack = 1e-9 * (high - low)
    return [float(t) for t in ticks if low - slack <= t <= high + slack]


@dataclass
class Chart:
    """A chart with linear axes.

    Parameters
    ----------
    description : str
        Alternative text.
    x, y : tuple of float
        Ranges of the axes.
    width, height : float
        Size in units of the drawing.
    margins : tuple of float
        Left, right, top and bottom.
    css : str
        CSS classes of the drawing; ``zoom`` lets the reader zoom.

    Examples
    --------
    >>> chart = Chart("a line", (0, 1), (0, 1), width=100, height=100, margins=(0, 0, 0, 0))
    >>> chart.line([0, 1], [0, 0.5], "c0", title="<b>")
    >>> "<polyline" in chart.html(), "&lt;b&gt;" in chart.html()
    (True, True)
    """

    description: str
    x: tuple[float, float]
    y: tuple[float, float]
    width: float = 420
    height: float = 360
    margins: tuple[float, float, float, float] = (52, 14, 14, 46)
    css: str = ""
    parts: list[str] = field(default_factory=list)

    def at(self, x: float | Array, y: float | Array) -> tuple[Array, Array]:
        """Return places in the drawing."""
        left, right, top, bottom = self.margins
        wide, high = self.width - left - right, self.height - top - bottom
        across = (np.asarray(x, dtype=np.float64) - self.x[0]) / (self.x[1] - self.x[0])
        up = (np.asarray(y, dtype=np.float64) - self.y[0]) / (self.y[1] - self.y[0])
        return left + across * wide, top + (1.0 - up) * high

    def axes(
        self,
        x_label: str,
        y_label: str,
        *,
        x_ticks: Sequence[float] | None = None,
        y_ticks: Sequence[float] | None = None,
        percent: bool = False,
        y_percent: bool = False,
    ) -> None:
        """Draw grid, ticks and labels; fractions are written in per cent if asked for."""
        left, right, top, bottom = self.margins
        last_x, last_y = self.width - right, self.height - bottom

        def label(value: float, percent: bool) -> str:
            return f"{100 * value:.0f}" if percent else f"{value:.4g}"

        for tick in tick_values(*self.x) if x_ticks is None else x_ticks:
            at = number(float(self.at(tick, self.y[0])[0]))
            self.parts.append(f'<path class="grid" d="M{at} {top}V{last_y}"/>')
            self.text(float(at), last_y + 16, label(tick, percent), "tick", anchor="middle")
        for tick in tick_values(*self.y) if y_ticks is None else y_ticks:
            at = number(float(self.at(self.x[0], tick)[1]))
            self.parts.append(f'<path class="grid" d="M{left} {at}H{last_x}"/>')
            text = label(tick, percent or y_percent)
            self.text(left - 7, float(at) + 4, text, "tick", anchor="end")
        self.text((left + last_x) / 2, self.height - 8, x_label, "label", anchor="middle")
        middle = (top + last_y) / 2
        turned = f'transform="rotate(-90 13 {number(middle)})"'
        self.text(13, middle, y_label, "label", anchor="middle", extra=turned)

    def line(
        self,
        x: Sequence[float] | Array,
        y: Sequence[float] | Array,
        css: str,
        *,
        title: str = "",
        extra: str = "",
    ) -> None:
        """Draw a line through points."""
        across, down = self.at(np.asarray(x), np.asarray(y))
        points = " ".join(
            f"{number(a)},{number(b)}" for a, b in zip(across.tolist(), down.tolist(), strict=True)
        )
        self.parts.append(f'<polyline class="{css}" points="{points}"{_and(extra)}>')
        self.parts.append(_title(title) + "</polyline>")

    def area(
        self, x: Sequence[float] | Array, low: Sequence[float], high: Sequence[float], css: str
    ) -> None:
        """Fill the area between two lines."""
        across, below = self.at(np.asarray(x), np.asarray(low))
        above = self.at(np.asarray(x), np.asarray(high))[1]
        ring = [*zip(across, above, strict=True), *zip(across[::-1], below[::-1], strict=True)]
        points = " ".join(f"{number(float(a))},{number(float(b))}" for a, b in ring)
        self.parts.append(f'<polygon class="{css}" points="{points}"/>')

    def dots(
        self,
        x: Array,
        y: Array,
        *,
        css: Iterable[str],
        titles: Iterable[str],
        radius: float = 4.0,
        keys: Iterable[int] | None = None,
        fills: Iterable[str] | None = None,
    ) -> None:
        """Draw one circle per point; ``keys`` are numbers of samples that the script lights up."""
        across, down = self.at(x, y)
        names = [None] * len(across) if keys is None else list(keys)
        colours = [None] * len(across) if fills is None else list(fills)
        each = zip(across.tolist(), down.tolist(), css, titles, names, colours, strict=True)
        for a, b, kind, title, key, fill in each:
            mark = "" if key is None else f' data-s="{int(key)}"'
            paint = "" if fill is None else f' style="fill:{fill}"'
            self.parts.append(
                f'<circle class="{kind}" cx="{number(a)}" cy="{number(b)}" r="{number(radius)}"'
                f"{mark}{paint}>{_title(title)}</circle>"
            )

    def text(
        self,
        across: float,
        down: float,
        text: str,
        css: str = "",
        *,
        anchor: str = "start",
        extra: str = "",
    ) -> None:
        """Write text at a place in the drawing."""
        self.parts.append(
            f'<text class="{css}" x="{number(across)}" y="{number(down)}"'
            f' text-anchor="{anchor}"{_and(extra)}>{escape(visible(text))}</text>'
        )

    def html(self) -> Html:
        """Return the drawing."""
        css = f"chart {self.css}".strip()
        return Html(
            f'<svg class="{css}" role="img" aria-label="{escape(self.description)}"'
            f' viewBox="0 0 {number(self.width)} {number(self.height)}">'
            + "".join(self.parts)
            + "</svg>"
        )


def visible(text: str) -> str:
    r"""Replace characters that XML does not have, such as NUL, and lone surrogates.

    Examples
    --------
    >>> visible("a\x00b\ud800")
    'a\ufffdb\ufffd'
    """
    return "".join(
        "\ufffd" if (ord(c) < 32 and c not in "\t\n\r") or 0xD800 <= ord(c) < 0xE000 else c
        for c in text
    )


def shortened(text: str, n: int = 28) -> str:
    """Return at most ``n`` characters of a name.

    Examples
    --------
    >>> shortened("ENSG00000141510", 8)
    'ENSG000…'
    """
    return text if len(text) <= n else text[: n - 1] + "…"


def _title(text: str) -> str:
    return f"<title>{escape(visible(text))}</title>" if text else ""


def _and(extra: str) -> str:
    return f" {extra}" if extra else ""
