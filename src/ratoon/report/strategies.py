"""Comparison of strategies: gain in accuracy, time per rewiring, explored positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ratoon.errors import InvalidInputError
from ratoon.report.style import BLUE, GREY, ORANGE, literal, tidy

PANELS = ("accuracy gained, points", "ms per rewiring", "explored, %")


@dataclass(eq=False)
class StrategyDisplay:
    """Three panels with one row per strategy.

    Parameters
    ----------
    gains : mapping of str to array-like
        Difference in accuracy to a static network, one number per split.
    seconds_per_rewiring : mapping of str to float
        Seconds per rewiring, for strategies that rewire.
    explored : mapping of str to float
        Fraction of positions that were ever connected.
    title : str
        Title of the first panel.

    Examples
    --------
    >>> display = StrategyDisplay({"set": [0.01, 0.03]}, {"set": 0.002}, {"set": 0.4})
    >>> display.names
    ['set']
    """

    gains: Mapping[str, ArrayLike]
    seconds_per_rewiring: Mapping[str, float]
    explored: Mapping[str, float]
    title: str = ""
    figure_: Any = field(default=None, init=False, repr=False)
    axes_: Any = field(default=None, init=False, repr=False)

    @property
    def names(self) -> list[str]:
        """The strategies from top to bottom, in decreasing order of gain."""
        if not self.gains:
            raise InvalidInputError("there is no strategy to show; `gains` is empty.")
        means = {
            name: float(np.mean(np.asarray(values, dtype=np.float64)))
            for name, values in self.gains.items()
        }
        return sorted(means, key=lambda name: -means[name])

    def plot(self, axes: Any | None = None, *, with_labels: bool = True) -> StrategyDisplay:
        """Draw the panels, on the given axes or a new figure.

        Parameters
        ----------
        axes : sequence of three matplotlib axes, optional
            Axes to draw on.
        with_labels : bool
            Whether to label the horizontal axes.
        """
        from matplotlib.ticker import NullFormatter

        if axes is None:
            from matplotlib import pyplot

            self.figure_, axes = pyplot.subplots(
                1, 3, figsize=(9.0, 1.2 + 0.32 * len(self.gains)), sharey=True, layout="constrained"
            )
        self.axes_ = list(axes)
        self.figure_ = self.axes_[0].figure
        self._draw_gains(self.axes_[0])
        for ax, values, factor in (
            (self.axes_[1], self.seconds_per_rewiring, 1e3),
            (self.axes_[2], self.explored, 100.0),
        ):
            for place, name in enumerate(self.names):
                if name in values:
                    ax.plot(factor * values[name], place, "o", color=BLUE, markersize=6)
        if self.seconds_per_rewiring:
            self.axes_[1].set_xscale("log")
            # Labels between the powers of ten would overlap.
            self.axes_[1].xaxis.set_minor_formatter(NullFormatter())
        self.axes_[2].set_xlim(left=0.0)
        for ax, label in zip(self.axes_, PANELS, strict=True):
            tidy(ax)
            ax.grid(axis="x", color="0.9", linewidth=0.8)
            if with_labels:
                ax.set_xlabel(label)
        return self

    def _draw_gains(self, ax: Any) -> None:
        """Draw every split as a small mark, and the mean with its standard error."""
        ax.axvline(0.0, color=GREY, linewidth=1.0)
        for place, name in enumerate(self.names):
            points = 100.0 * np.asarray(self.gains[name], dtype=np.float64)
            ax.plot(points, np.full(points.size, place), "|", color=ORANGE, alpha=0.6, markersize=9)
            error = points.std(ddof=1) / np.sqrt(points.size) if points.size > 1 else 0.0
            ax.errorbar(points.mean(), place, xerr=error, fmt="o", color=BLUE, capsize=3)
        ax.set_yticks(range(len(self.gains)), self.names)
        if not ax.yaxis_inverted():
            ax.invert_yaxis()
        ax.set_title(literal(self.title), fontsize="medium", loc="left")
