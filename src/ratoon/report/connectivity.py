"""Connectivity of the inputs: where a network looks, as a picture where inputs are pixels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.errors import InvalidInputError
from ratoon.report.style import BLUE, new_axes, tidy


@dataclass(eq=False)
class ConnectivityDisplay:
    """How much every input is connected: a heat map for images, bars over positions otherwise.

    Parameters
    ----------
    values : ndarray of shape (n_inputs,)
        Connections of every input, or the summed magnitude of their weights.
    image_shape : tuple of int, optional
        Height and width, where inputs are the pixels of an image, row by row.
    label : str
        What the values are.

    Examples
    --------
    >>> display = ConnectivityDisplay(np.arange(6), image_shape=(2, 3))
    >>> display.grid.shape
    (2, 3)
    """

    values: NDArray[Any]
    image_shape: tuple[int, int] | None = None
    label: str = "connections per input"
    figure_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        shape = self.image_shape
        if shape is not None and shape[0] * shape[1] != self.values.size:
            raise InvalidInputError(
                f"an image of {shape[0]} x {shape[1]} has {shape[0] * shape[1]} pixels; the network"
                f" has {self.values.size} inputs."
            )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        image_shape: tuple[int, int] | None = None,
        by: str = "connections",
    ) -> ConnectivityDisplay:
        """Show the inputs of a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        image_shape : tuple of int, optional
            Height and width of an image.
        by : {"connections", "strength"}
            Whether to count connections or to sum the magnitude of their weights.
        """
        if by not in ("connections", "strength"):
            raise InvalidInputError(f'`by` must be "connections" or "strength", got {by!r}.')
        network = estimator.network_
        if by == "strength":
            return cls(network.input_strength(), image_shape, "connection strength of input")
        return cls(network.layers[0].topology.degrees()[0], image_shape)

    @property
    def grid(self) -> NDArray[Any]:
        """The values as an image, or, without a shape, binned to at most 400 places."""
        if self.image_shape is not None:
            return self.values.reshape(self.image_shape)
        parts = np.array_split(self.values, min(400, self.values.size))
        return np.array([[part.mean() for part in parts]])

    def plot(self, ax: Any | None = None) -> ConnectivityDisplay:
        """Draw the heat map, or the values along the inputs."""
        if self.image_shape is None:
            self.figure_, self.ax_ = new_axes(ax, figsize=(6.0, 2.6))
            binned = self.grid[0]
            places = np.linspace(0, self.values.size, binned.size, endpoint=False)
            self.ax_.fill_between(places, binned, step="post", color=BLUE, alpha=0.8, linewidth=0)
            self.ax_.set_xlabel("input")
            self.ax_.set_ylabel(self.label)
            self.ax_.set_ylim(bottom=0)
            tidy(self.ax_)
            return self
        self.figure_, self.ax_ = new_axes(ax, figsize=(4.6, 4.0))
        drawn = self.ax_.imshow(self.grid, cmap="cividis", interpolation="nearest")
        self.figure_.colorbar(drawn, ax=self.ax_, label=self.label, shrink=0.85)
        self.ax_.set_xticks([])
        self.ax_.set_yticks([])
        return self
