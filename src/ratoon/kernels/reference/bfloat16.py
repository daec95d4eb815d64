"""Stochastic rounding to bfloat16, one weight at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.kernels.reference.random import random_bits

_APART_FROM_DROPOUT = 0x726F756E64696E67


def rounding_seed(dropout_seed: int, step: int, layer: int) -> int:
    """Return the random stream that rounds a layer's weights after a step."""
    return random_bits(dropout_seed ^ _APART_FROM_DROPOUT, step * 1024 + layer)


def round_at_random(weights: NDArray[Any], seed: int) -> NDArray[np.uint16]:
    """Round each weight up or down; the probability of up is the fraction that is cut off.

    Examples
    --------
    >>> bits = round_at_random(np.full(1000, 1 + 0.25 / 128, dtype=np.float32), seed=0)
    >>> np.unique(bits, return_counts=True)
    (array([16256, 16257], dtype=uint16), array([764, 236]))
    """
    halves = np.empty(weights.shape, dtype=np.uint16)
    for slot, bits in enumerate(weights.astype(np.float32).view(np.uint32).tolist()):
        noise = random_bits(seed, slot // 4) >> (16 * (slot % 4)) & 0xFFFF
        halves[slot] = (bits + noise) >> 16 & 0xFFFF
    return halves
