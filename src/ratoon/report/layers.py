"""Layers: degree distributions, and connections compared with those of a dense network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.errors import InvalidInputError
from ratoon.report.style import BLUE, CYCLE, GREY, new_axes, tidy

Degrees = NDArray[np.int64]


@dataclass(eq=False)
class DegreeDisplay:
    """Fraction of neurons with at least a given number of connections, on logarithmic axes.

    Random topologies give curves that drop sharply near the mean degree.  Hubs, which rewiring may
    form, appear as a tail to the right.

    Parameters
    ----------
    degrees : mapping of str to ndarray of int
        For each group of neurons, the number of connections of every neuron.

    Examples
    --------
    >>> display = DegreeDisplay({"inputs": np.array([0, 2, 2, 5])})
    >>> values, shares = display.survival("inputs")
    >>> values.tolist(), shares.tolist()
    ([0, 2, 5], [1.0, 0.75, 0.25])
    """

    degrees: Mapping[str, Degrees]
    figure_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, layer: int = 0) -> DegreeDisplay:
        """Show the inputs and outputs of one layer of a fitted estimator."""
        layers = estimator.network_.layers
        if not -len(layers) <= layer < len(layers):
            raise InvalidInputError(f"the network has {len(layers)} layers, not a layer {layer}.")
        inputs, outputs = layers[layer].topology.degrees()
        return cls({"inputs of the layer": inputs, "outputs of the layer": outputs})

    def survival(self, name: str) -> tuple[Degrees, NDArray[np.float64]]:
        """Return the degrees that occur, and the fraction of neurons with at least each."""
        values, counts = np.unique(np.asarray(self.degrees[name]), return_counts=True)
        return values, np.asarray(counts[::-1].cumsum()[::-1] / counts.sum())

    @property
    def is_uniform(self) -> bool:
        """Whether all neurons of every group have the same degree."""
        return all(np.unique(degrees).size == 1 for degrees in self.degrees.values())

    def plot(self, ax: Any | None = None) -> DegreeDisplay:
        """Draw one curve per group."""
        self.figure_, self.ax_ = new_axes(ax)
        for name, colour in zip(self.degrees, CYCLE * 3, strict=False):
            values, shares = self.survival(name)
            marker = "o" if values.size < 30 else None
            self.ax_.plot(
                np.maximum(values, 0.5), shares, color=colour, label=name, marker=marker, ms=3.5
            )
        self.ax_.set_xscale("log")
        self.ax_.set_yscale("log")
        has_zero = any(np.min(degrees) == 0 for degrees in self.degrees.values())
        self.ax_.set_xlabel("connections" + (" (0 is drawn at 0.5)" if has_zero else ""))
        self.ax_.set_ylabel("fraction of neurons with as many or more")
        self.ax_.legend(frameon=False)
        tidy(self.ax_)
        return self


@dataclass(eq=False)
class ConnectionCountDisplay:
    """Pairs of bars: connections of a sparse network and of a dense one of the same shape.

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
        """Show every layer of a fitted estimator, and the total."""
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
        n_connections, n_positions = self.counts[name]
        return n_connections / n_positions

    def plot(self, ax: Any | None = None) -> ConnectionCountDisplay:
        """Draw the bars, labelled with the numbers."""
        n = len(self.counts)
        self.figure_, self.ax_ = new_axes(ax, figsize=(6.0, 0.9 + 0.62 * n))
        places = np.arange(n)
        for shift, column, colour, name in ((-0.2, 0, BLUE, "sparse"), (0.2, 1, GREY, "dense")):
            values = [pair[column] for pair in self.counts.values()]
            bars = self.ax_.barh(places + shift, values, height=0.36, color=colour, label=name)
            self.ax_.bar_label(bars, [f"{value:,}" for value in values], padding=3, fontsize=8)
        self.ax_.set_xscale("log")
        largest = max(pair[1] for pair in self.counts.values())
        smallest = min(pair[0] for pair in self.counts.values())
        self.ax_.set_xlim(max(smallest / 10, 0.8), largest * 30)  # space for the labels
        self.ax_.set_yticks(places, list(self.counts))
        self.ax_.invert_yaxis()
        self.ax_.tick_params(axis="y", length=0)
        self.ax_.set_xlabel("connections")
        tidy(self.ax_)
        self.ax_.grid(visible=False)
        self.ax_.legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
        return self
