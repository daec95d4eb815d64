"""`Augment`: random shifts and flips of images during training."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ratoon.errors import InvalidParameterError

CHANNELS = ("auto", "first", "last")
MOST_CHANNELS = 4
_WORDS = "`shift`, `shift=4`, `flip`, `shape=3x32x32` and `channels=first`"


@dataclass(frozen=True)
class Augment:
    """Shift and flip images at random while they are read for training.

    Every epoch shows an image at another place, and with ``flip`` half of them mirrored.  What
    comes from outside the image is 0.  No changed copy of X exists.  The changes depend on the
    seed, the epoch and the row of the image alone.

    Parameters
    ----------
    shape : tuple of int, optional
        (height, width), (channels, height, width) or (height, width, channels) of a sample, whose
        features are the values in this order.  None takes the shape of the data set, or a square
        of one channel.
    shift : int, optional
        Most pixels to shift by, down or up and right or left.  None is an eighth of the shorter
        side; 0 for no shift.
    flip : bool, default=False
        Whether half of the images are flipped, left to right.
    channels : "auto", "first" or "last", default="auto"
        Where ``shape`` has the channels.  ``"auto"`` finds it if only one end has at most four.

    Examples
    --------
    >>> Augment(shift=4, flip=True).for_features(784)
    Augment(shape=(28, 28), shift=4, flip=True, channels='first')
    >>> Augment(shape=(32, 32, 3)).for_features(3072)
    Augment(shape=(32, 32, 3), shift=4, flip=False, channels='last')
    """

    shape: tuple[int, ...] | None = None
    shift: int | None = None
    flip: bool = False
    channels: str = "auto"

    def __post_init__(self) -> None:
        sizes: Any = self.shape
        if sizes is not None:
            sizes = sizes if isinstance(sizes, tuple | list) else ()
            if len(sizes) not in (2, 3) or not all(_is_count(size, 1) for size in sizes):
                raise InvalidParameterError(
                    f"Augment: `shape` must be two or three whole numbers, such as (28, 28) or"
                    f" (3, 32, 32), got {self.shape!r}."
                )
            object.__setattr__(self, "shape", tuple(int(size) for size in sizes))
        if self.shift is not None and not _is_count(self.shift, 0):
            raise InvalidParameterError(
                f"Augment: `shift` must be a whole number of pixels, 0 or above, got"
                f" {self.shift!r}."
            )
        if not isinstance(self.flip, bool | np.bool_):
            raise InvalidParameterError(
                f"Augment: `flip` must be True or False, got {self.flip!r}."
            )
        if self.channels not in CHANNELS:
            raise InvalidParameterError(
                f"Augment: `channels` must be one of {CHANNELS}, got {self.channels!r}."
            )
        if self.shift == 0 and not self.flip:
            raise InvalidParameterError(
                "Augment: without a shift and without flips, images would not change.\n"
                "  Set `shift` to a number of pixels, or `flip=True`."
            )

    @classmethod
    def from_text(cls, text: str) -> Augment:
        """Return what a text such as ``shift=4,flip,shape=3x32x32`` describes.

        Examples
        --------
        >>> Augment.from_text("shift+flip")
        Augment(shape=None, shift=None, flip=True, channels='auto')
        >>> Augment.from_text("flip,shape=32x32x3")
        Augment(shape=(32, 32, 3), shift=0, flip=True, channels='auto')
        """
        given: dict[str, Any] = {}
        for part in text.replace("+", ",").split(","):
            key, separator, value = (word.strip() for word in part.partition("="))
            try:
                if key in given:
                    raise ValueError
                if key in ("shift", "flip") and not separator:
                    given[key] = True if key == "flip" else None
                elif key == "shift":
                    given[key] = int(value)
                elif key == "shape":
                    given[key] = tuple(int(size) for size in value.split("x"))
                elif key == "channels":
                    given[key] = value
                else:
                    raise ValueError
            except ValueError:
                raise InvalidParameterError(
                    f"`augment` has parts separated by commas, of {_WORDS}, each at most once; got"
                    f" {text!r}."
                ) from None
        if not given.keys() & {"shift", "flip"}:
            raise InvalidParameterError(f"`augment` needs `shift` or `flip`, got {text!r}.")
        return cls(**{"shift": 0, **given})

    def for_features(self, n_features: int, known: tuple[int, ...] | None = None) -> Augment:
        """Return the same with the shape, shift and channels of images of so many features.

        Parameters
        ----------
        n_features : int
            Features of a sample.
        known : tuple of int, optional
            Shape of the images of the data set, taken where ``shape`` is None.

        Raises
        ------
        InvalidParameterError
            If the shape does not fit, or is not known.
        """
        shape = self.shape or known or _square(n_features)
        if math.prod(shape) != n_features:
            product = " x ".join(map(str, shape))
            raise InvalidParameterError(
                f"`augment`: images of {product} have {math.prod(shape):,} values, but a sample has"
                f" {n_features:,} features.\n"
                f"  Set `shape` to the shape of the images."
            )
        is_known = (
            self.shape is None and len(shape) == 3
        )  # data sets have (height, width, channels)
        channels = "last" if is_known else _channels(shape, self.channels)
        height, width = shape[:2] if channels == "last" else shape[-2:]
        side = min(height, width)
        shift = (max(1, side // 8) if side > 1 else 0) if self.shift is None else self.shift
        if shift >= side:
            raise InvalidParameterError(
                f"`augment`: a shift of {shift} pixels is too large for images of {height} x"
                f" {width}; it must be smaller than their sides."
            )
        return Augment(shape, shift, bool(self.flip), channels)

    @property
    def layout(self) -> tuple[int, int, int, int]:
        """Channels before the pixels, height, width, and channels within a pixel.

        Examples
        --------
        >>> Augment((3, 32, 32)).layout, Augment((32, 32, 3)).layout, Augment((28, 28)).layout
        ((3, 32, 32, 1), (1, 32, 32, 3), (1, 28, 28, 1))
        """
        assert self.shape is not None, "`for_features` was not called"
        if _channels(self.shape, self.channels) == "last":
            height, width, *rest = self.shape
            return 1, height, width, rest[0] if rest else 1
        *first, height, width = self.shape
        return first[0] if first else 1, height, width, 1


def as_augment(value: Any) -> Augment | None:
    """Return the value of a parameter as `Augment`, or None.

    Raises
    ------
    InvalidParameterError
        If it is neither None, nor a text, nor an `Augment`.
    """
    if value is None or isinstance(value, Augment):
        return value
    if isinstance(value, str):
        return Augment.from_text(value)
    raise InvalidParameterError(
        f"`augment` must be None, a text of {_WORDS}, or an `Augment`, got {value!r}."
    )


def _is_count(value: Any, least: int) -> bool:
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return is_whole and int(value) >= least


def _square(n_features: int) -> tuple[int, ...]:
    side = math.isqrt(n_features)
    if side * side == n_features:
        return side, side
    hint = ""
    colour = math.isqrt(n_features // 3)
    if 3 * colour * colour == n_features:
        hint = f", such as (3, {colour}, {colour}) or ({colour}, {colour}, 3)"
    raise InvalidParameterError(
        f"`augment`: {n_features:,} features are not a square image of one channel.\n"
        f"  Set `shape` to the shape of the images{hint}: the features of a sample in this order."
    )


def _channels(shape: tuple[int, ...], channels: str) -> str:
    if len(shape) == 2:
        return "first" if channels == "auto" else channels
    if channels != "auto":
        return channels
    first, last = (size <= MOST_CHANNELS for size in (shape[0], shape[-1]))
    if first == last:
        raise InvalidParameterError(
            f"`augment`: the shape {shape} does not show where the channels are.\n"
            f'  Set `channels` to "first" for (channels, height, width) or "last" for (height,'
            f" width, channels)."
        )
    return "first" if first else "last"
