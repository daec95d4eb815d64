"""Degree distributions: how many connections the neurons of a layer have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.errors import InvalidInputError
from ratoon.report.style import CYCLE, new_axes, tidy

Degrees = NDArray[np.int64]


@dataclass(eq=False)
class DegreeDisplay:
    """The fraction of neurons that have at least so many connections, on logarithmic axes.

    A random start gives curves that fall off sharply near the mean; hubs, which rewiring may
    form, show as a tail to the right.

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
        """Show inputs and outputs of one layer of a fitted estimator."""
        layers = estimator.network_.layers
        if not -len(layers) <= layer < len(layers):
            raise InvalidInputError(f"the network has {len(layers)} layers, not a layer {layer}.")
        inputs, outputs = layers[layer].topology.degrees()
        return cls({"inputs of the layer": inputs, "outputs of the layer": outputs})

    def survival(self, name: str) -> tuple[Degrees, NDArray[np.float64]]:
        """Return the degrees that occur, and which share of neurons has at least each."""
        values, counts = np.unique(np.asarray(self.degrees[name]), return_counts=True)
        return values, np.asarray(counts[::-1].cumsum()[::-1] / counts.sum())

    @property
    def is_uniform(self) -> bool:
        """Whether all neurons of every group have the same degree, so that nothing is to see."""
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
        idle = any(np.min(degrees) == 0 for degrees in self.degrees.values())
        self.ax_.set_xlabel("connections" + (" (none is drawn at 0.5)" if idle else ""))
        self.ax_.set_ylabel("share of neurons with as many or more")
        self.ax_.legend(frameon=False)
        tidy(self.ax_)
        return self
