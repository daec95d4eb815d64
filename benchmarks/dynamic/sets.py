"""Data sets of the benchmark: samples, fixed training and test rows, and the network of the set."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from ratoon.kernels import Scaling
from ratoon.samples.statistics import feature_statistics

Rows = NDArray[np.int64]
VALIDATION_SHARE = 1 / 6
"""The part of the training rows that is held back wherever something is chosen."""


@dataclass(frozen=True, eq=False)
class Task:
    """Samples, classes from 0, and the network that learns them.

    ``train`` and ``test`` are fixed.  A task for a choice has the validation part as ``test``.
    """

    name: str
    x: NDArray[Any]
    y: Rows
    train: Rows
    test: Rows
    hidden: tuple[int, ...]
    image: tuple[int, ...] | None = None
    per_feature: bool = False

    @property
    def widths(self) -> tuple[int, ...]:
        """Neurons per layer, inputs and outputs included."""
        return (self.x.shape[1], *self.hidden, int(self.y.max()) + 1)

    def scaling(self) -> Scaling:
        """Return the scaling of the training rows.

        One mean and deviation for each channel of images, otherwise for each feature.
        """
        if self.per_feature:
            found = feature_statistics(self.x[self.train])
            return Scaling(found.mean, found.factors(), 10.0)
        n_channels = self.image[0] if self.image and len(self.image) == 3 else 1
        channels = self.x[self.train].reshape(self.train.size, n_channels, -1)
        n_pixels = channels.shape[2]
        mean = channels.mean(axis=(0, 2), dtype=np.float64)
        deviation = np.array([channels[:, k].std(dtype=np.float64) for k in range(n_channels)])
        return Scaling(np.repeat(mean, n_pixels), np.repeat(1 / deviation, n_pixels))

    def for_choice(self) -> Task:
        """Return the task that is learned where something is chosen: test rows do not occur."""
        train, validation = train_test_split(
            self.train, test_size=VALIDATION_SHARE, stratify=self.y[self.train], random_state=0
        )
        return replace(self, train=np.sort(train), test=np.sort(validation))


def _numbered(y: Any) -> Rows:
    return np.unique(np.ravel(y), return_inverse=True)[1].astype(np.int64)


def _split(name: str, x: Any, y: Any, **named: Any) -> Task:
    """Return a task of which a stratified third of the rows is the test part."""
    classes = _numbered(y)
    train, test = train_test_split(
        np.arange(classes.size), test_size=1 / 3, stratify=classes, random_state=0
    )
    return Task(name, np.ascontiguousarray(x), classes, np.sort(train), np.sort(test), **named)


def _mnist(folder: Path) -> Task:
    with np.load(folder / "mnist.npz") as file:
        x, y, train = file["X"], file["y"], file["train"]
    return Task("mnist", x, _numbered(y), *_parts(train), hidden=(1568,) * 3, image=(28, 28))


def _cifar10(folder: Path) -> Task:
    from PIL import Image

    with np.load(folder / "cifar10_jpeg.npz") as file:
        jpeg, offsets, y, train = (file[key] for key in ("jpeg", "offsets", "y", "train"))
    x = np.empty((y.size, 3, 32, 32), dtype=np.uint8)
    for number in range(y.size):
        stored = io.BytesIO(jpeg[offsets[number] : offsets[number + 1]].tobytes())
        x[number] = np.asarray(Image.open(stored).convert("RGB")).transpose(2, 0, 1)
    return Task(
        "cifar10",
        x.reshape(y.size, -1),
        _numbered(y),
        *_parts(train),
        hidden=(4000, 1000, 4000),
        image=(3, 32, 32),
    )


def _parts(train: NDArray[np.bool_]) -> tuple[Rows, Rows]:
    return np.flatnonzero(train), np.flatnonzero(~train)


def _from_npz(name: str, folder: Path, **named: Any) -> Task:
    with np.load(folder / f"{name}.npz") as file:
        x, y = file["X"].astype(np.float32), file["y"]
    return _split(name.lower(), x, y, **named)


def _digits(folder: Path) -> Task:
    del folder
    x, y = load_digits(return_X_y=True)
    return _split("digits", x.astype(np.float32), y, hidden=(1000,) * 3, image=(8, 8))


SETS: dict[str, Callable[[Path], Task]] = {
    "mnist": _mnist,
    "cifar10": _cifar10,
    "isolet": partial(_from_npz, "Isolet", hidden=(1000,) * 3, per_feature=True),
    "coil20": partial(_from_npz, "COIL20", hidden=(1000,) * 3, image=(32, 32)),
    "digits": _digits,
}
FILES = {
    "mnist": "mnist.npz",
    "cifar10": "cifar10_jpeg.npz",
    "isolet": "Isolet.npz",
    "coil20": "COIL20.npz",
}


def default_folder() -> Path:
    """Return where the development sets are."""
    return Path(__file__).parents[3] / "shared" / "data"


def is_there(name: str, folder: Path) -> bool:
    """Whether the file of a set is in the folder."""
    return name not in FILES or (folder / FILES[name]).exists()


@lru_cache(maxsize=2)
def load(name: str, folder: Path) -> Task:
    """Return a set, read once per process."""
    return SETS[name](folder)


@lru_cache(maxsize=2)
def load_for_choice(name: str, folder: Path) -> Task:
    """Return the training rows of a set, divided for a choice."""
    return load(name, folder).for_choice()
