"""Shifted and flipped images: twin of `augment.hpp`."""

from __future__ import annotations

import numpy as np

from ratoon.arrays import Array
from ratoon.kernels.reference.random import random_below, random_bits
from ratoon.samples.augment import Augment


def augmented(x: Array, augment: Augment, seed: int) -> Array:
    """Return a copy of the images in the rows of x, each changed at random.

    Examples
    --------
    >>> augmented(np.arange(1, 10)[None], Augment((3, 3), shift=1), seed=1).reshape(3, 3)
    array([[0, 1, 2],
           [0, 4, 5],
           [0, 7, 8]])
    """
    resolved = augment.for_features(x.shape[1])
    shift, (planes, height, width, inner) = resolved.shift or 0, resolved.layout
    out = np.zeros_like(x)
    for row in range(x.shape[0]):
        image = x[row].reshape(planes, height, width, inner)
        down, right = (random_below(seed, 3 * row + k, 2 * shift + 1) - shift for k in (0, 1))
        if resolved.flip and random_bits(seed, 3 * row + 2) >> 63:
            image = image[:, :, ::-1]
        wide = np.pad(image, ((0, 0), (shift, shift), (shift, shift), (0, 0)))
        top, left = shift - down, shift - right
        out[row] = wide[:, top : top + height, left : left + width].ravel()
    return out
