"""Connectivity of the inputs over time: how connections gather where the information is."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.errors import InvalidInputError
from ratoon.report.style import BLUE, new_axes
from ratoon.training.recorder import TopologyRecorder

WRITERS = {".gif": "pillow", ".mp4": "ffmpeg", ".html": "html"}


@dataclass(eq=False)
class ConnectivityAnimation:
    """What a recorder saw, as a film: a heat map per rewiring, where inputs are pixels.

    Parameters
    ----------
    frames : ndarray of shape (n_frames, height, width)
        One image per moment.
    epochs : sequence of int
        The epoch each belongs to.
    label : str
        What the values are.

    Examples
    --------
    >>> film = ConnectivityAnimation(np.arange(12).reshape(2, 2, 3), [0, 1])
    >>> film.shares(np.array([[True, False, False], [True, False, False]])).round(2).tolist()
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
                f"a film needs one image and one epoch per frame; got an array of shape"
                f" {self.frames.shape} and {len(self.epochs)} epochs."
            )

    @classmethod
    def from_recorder(
        cls, recorder: TopologyRecorder, image_shape: tuple[int, int], *, by: str = "connections"
    ) -> ConnectivityAnimation:
        """Play a training back.

        Parameters
        ----------
        recorder : TopologyRecorder
            Was given to a training as a callback.
        image_shape : tuple of int
            Height and width of the images whose pixels the inputs are, row by row.
        by : {"connections", "strength"}
            Connections of every pixel at the start and after every rewiring, or the summed
            magnitude of their weights after every epoch; the latter only if the recorder was told
            to keep it (``with_strength=True``).
        """
        if not recorder.shapes:
            raise InvalidInputError("the recorder has seen no training yet.")
        n_in, n_out = recorder.shapes[0]
        if image_shape[0] * image_shape[1] != n_in:
            raise InvalidInputError(
                f"an image of {image_shape[0]} x {image_shape[1]} has"
                f" {image_shape[0] * image_shape[1]} pixels; the network has {n_in} inputs."
            )
        if by == "strength":
            if not recorder.strengths:
                raise InvalidInputError(
                    "the recorder kept no strengths; make it with with_strength=True."
                )
            frames = np.stack(recorder.strengths)
            epochs = list(range(1, len(frames) + 1))
            label = "connection strength of pixel"
        elif by == "connections":
            moments = list(recorder.replay())
            frames = np.stack(
                [np.bincount(layers[0] // n_out, minlength=n_in) for _, layers in moments]
            )
            epochs, label = [epoch for epoch, _ in moments], "connections per pixel"
        else:
            raise InvalidInputError(f'`by` must be "connections" or "strength", got {by!r}.')
        return cls(frames.reshape(-1, *image_shape), epochs, label)

    def shares(self, where: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return which share of every frame lies in a part of the image."""
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
        # How far the film has come, below the picture.
        [bar] = self.ax_.plot([0, 0], [-0.03, -0.03], transform=self.ax_.transAxes, color=BLUE)
        bar.set(linewidth=3.0, clip_on=False, solid_capstyle="butt")

        def show(number: int) -> tuple[Any, ...]:
            self._image.set_data(self.frames[number])
            self._title(number)
            bar.set_xdata([0.0, (number + 1) / len(self.frames)])
            return (self._image, bar)

        return FuncAnimation(self.figure_, show, frames=len(self.frames), interval=interval)

    def save(self, path: str | Path, *, interval: int = 150, dpi: int = 90) -> None:
        """Write a film: .gif needs nothing more, .mp4 needs ffmpeg, .html plays in a browser."""
        from matplotlib import pyplot

        target = Path(path)
        if target.suffix not in WRITERS:
            raise InvalidInputError(f"{target.name}: the name must end in {', '.join(WRITERS)}.")
        film = self.animate(interval=interval)
        film.save(target, writer=WRITERS[target.suffix], dpi=dpi)
        pyplot.close(self.figure_)
