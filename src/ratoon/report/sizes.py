"""Connections of a sparse network beside those of a dense one, on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ratoon.report.style import BLUE, GREY, new_axes, tidy


@dataclass(eq=False)
class ConnectionCountDisplay:
    """Pairs of bars: connections there are, and connections a dense network would have.

    Parameters
    ----------
    counts : mapping of str to (int, int)
        For each network or layer, the number of connections and of positions.

    Examples
    --------
    >>> ConnectionCountDisplay({"layer 1": (1_000, 50_000)}).density("layer 1")
    0.02
    """

    counts: Mapping[str, tuple[int, int]]
    figure_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any) -> ConnectionCountDisplay:
        """Show the layers of a fitted estimator, and all of them together."""
        network = estimator.network_
        counts = {
            f"layer {number}": (layer.n_connections, layer.topology.n_positions)
            for number, layer in enumerate(network.layers, start=1)
        }
        if len(counts) > 1:
            counts["all layers"] = (network.n_connections, network.n_positions)
        return cls(counts)

    def density(self, name: str) -> float:
        """Return connections divided by positions."""
        there, possible = self.counts[name]
        return there / possible

    def plot(self, ax: Any | None = None) -> ConnectionCountDisplay:
        """Draw the bars, with the numbers at their ends."""
        n = len(self.counts)
        self.figure_, self.ax_ = new_axes(ax, figsize=(6.0, 0.9 + 0.62 * n))
        places = np.arange(n)
        for shift, column, colour, name in ((-0.2, 0, BLUE, "sparse"), (0.2, 1, GREY, "dense")):
            values = [pair[column] for pair in self.counts.values()]
            bars = self.ax_.barh(places + shift, values, height=0.36, color=colour, label=name)
            self.ax_.bar_label(bars, [f"{value:,}" for value in values], padding=3, fontsize=8)
        self.ax_.set_xscale("log")
        largest = max(pair[1] for pair in self.counts.values())
        least = min(pair[0] for pair in self.counts.values())
        self.ax_.set_xlim(max(least / 10, 0.8), largest * 30)  # room for the numbers
        self.ax_.set_yticks(places, list(self.counts))
        self.ax_.invert_yaxis()
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.set_xlabel("connections")
        tidy(self.ax_)
        self.ax_.grid(visible=False)
        self.ax_.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
        return self
