"""Connectivity of the inputs, after training and over time."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.errors import InvalidInputError
from ratoon.report.style import BLUE, new_axes, tidy
from ratoon.storage.atomic import write_file
from ratoon.training.recorder import TopologyRecorder

WRITERS = {".gif": "pillow", ".mp4": "ffmpeg", ".html": "html"}


@dataclass(eq=False)
class ConnectivityDisplay:
    """Connectivity of every input: a heat map for images, else a plot over the inputs.

    Parameters
    ----------
    values : ndarray of shape (n_inputs,)
        Connections of every input, or the summed magnitude of their weights.
    image_shape : tuple of int, optional
        Height and width, where inputs are the pixels of an image, row by row.
    label : str
        Axis label.

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
        """The values as an image, or, without a shape, averaged in at most 400 bins."""
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


@dataclass(eq=False)
class ConnectivityAnimation:
    """An animated heat map of the connectivity of input pixels over a training.

    Parameters
    ----------
    frames : ndarray of shape (n_frames, height, width)
        One image per frame.
    epochs : sequence of int
        The epoch of every frame.
    label : str
        Axis label.

    Examples
    --------
    >>> animation = ConnectivityAnimation(np.arange(12).reshape(2, 2, 3), [0, 1])
    >>> animation.shares(np.array([[True, False, False], [True, False, False]])).round(2).tolist()
    [0.2, 0.29]
    """

    frames: NDArray[Any]
    epochs: list[int]
    label: str = "connections per pixel"
    figure_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.frames.ndim != 3 or len(self.frames) != len(self.epochs) or not len(self.epochs):
            raise InvalidInputError(
                f"an animation needs one image and one epoch per frame; got an array of shape"
                f" {self.frames.shape} and {len(self.epochs)} epochs."
            )

    @classmethod
    def from_recorder(
        cls, recorder: TopologyRecorder, image_shape: tuple[int, int], *, by: str = "connections"
    ) -> ConnectivityAnimation:
        """Show a recorded training.

        Parameters
        ----------
        recorder : TopologyRecorder
            Callback of the training.
        image_shape : tuple of int
            Height and width; inputs are pixels, row by row.
        by : {"connections", "strength"}
            Connections of every pixel at the start and after every rewiring, or the summed
            magnitude of their weights after every epoch, which needs a recorder made with
            ``with_strength=True``.
        """
        if not recorder.shapes:
            raise InvalidInputError("the recorder has recorded no training yet.")
        n_in, n_out = recorder.shapes[0]
        if image_shape[0] * image_shape[1] != n_in:
            raise InvalidInputError(
                f"an image of {image_shape[0]} x {image_shape[1]} has"
                f" {image_shape[0] * image_shape[1]} pixels; the network has {n_in} inputs."
            )
        if by == "strength":
            if not recorder.strengths:
                raise InvalidInputError(
                    "the recorder has no strengths; create it with with_strength=True."
                )
            frames = np.stack(recorder.strengths)
            epochs = list(range(1, len(frames) + 1))
            label = "connection strength of pixel"
        elif by == "connections":
            states = list(recorder.replay())
            frames = np.stack(
                [np.bincount(layers[0] // n_out, minlength=n_in) for _, layers in states]
            )
            epochs, label = [epoch for epoch, _ in states], "connections per pixel"
        else:
            raise InvalidInputError(f'`by` must be "connections" or "strength", got {by!r}.')
        return cls(frames.reshape(-1, *image_shape), epochs, label)

    def shares(self, where: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the fraction of every frame that lies in a region of the image."""
        flat = self.frames.reshape(len(self.frames), -1).astype(np.float64)
        shares: NDArray[np.float64] = flat[:, where.ravel()].sum(axis=1) / flat.sum(axis=1)
        return shares

    def plot(self, number: int = -1, ax: Any | None = None) -> ConnectivityAnimation:
        """Draw one frame, the last by default; all frames have the same scale."""
        self.figure_, self.ax_ = new_axes(ax, figsize=(4.6, 4.2))
        self._image = self.ax_.imshow(
            self.frames[number],
            cmap="cividis",
            interpolation="nearest",
            vmin=0.0,
            vmax=max(float(self.frames.max()), 1e-12),
        )
        self.figure_.colorbar(self._image, ax=self.ax_, label=self.label, shrink=0.85)
        self.ax_.set_xticks([])
        self.ax_.set_yticks([])
        self._title(number)
        return self

    def _title(self, number: int) -> None:
        self.ax_.set_title(f"epoch {self.epochs[number]}", loc="left")

    def animate(self, *, interval: int = 150) -> Any:
        """Return a matplotlib animation of all frames, ``interval`` milliseconds each."""
        from matplotlib.animation import FuncAnimation

        self.plot(0)
        # A progress bar below the picture.
        [bar] = self.ax_.plot([0, 0], [-0.03, -0.03], transform=self.ax_.transAxes, color=BLUE)
        bar.set(linewidth=3.0, clip_on=False, solid_capstyle="butt")

        def show(number: int) -> tuple[Any, ...]:
            self._image.set_data(self.frames[number])
            self._title(number)
            bar.set_xdata([0.0, (number + 1) / len(self.frames)])
            return (self._image, bar)

        return FuncAnimation(self.figure_, show, frames=len(self.frames), interval=interval)

    def save(self, path: str | Path, *, interval: int = 150, dpi: int = 90) -> None:
        """Save the animation as .gif, .mp4 (needs ffmpeg) or .html (plays in a browser)."""
        from matplotlib import pyplot

        target = Path(path)
        if target.suffix not in WRITERS:
            raise InvalidInputError(f"{target.name}: the name must end in {', '.join(WRITERS)}.")
        animation = self.animate(interval=interval)
        # The writers of Matplotlib name their own files: a complete one is copied.
        with TemporaryDirectory() as folder:
            whole = Path(folder, f"animation{target.suffix}")
            animation.save(whole, writer=WRITERS[target.suffix], dpi=dpi)
            pyplot.close(self.figure_)
            write_file(target, whole.read_bytes())
