"""Weights in bfloat16: the upper half of a float32, kept as ``uint16``; NumPy has no such type.

It has the range of float32 and eight bits of precision.  Kernels widen a weight while they use it
and round it at random when they write it back (`native/bfloat16.hpp`); the two conversions that
other code needs are here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

HALF = np.dtype(np.uint16)
"""The type of arrays that hold the bits of bfloat16."""

_CHUNK = 1 << 20  # so that intermediate arrays stay small


def widen(halves: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return numbers for bits; no number is lost.

    Examples
    --------
    >>> widen(np.array([0x3F80, 0xC040], dtype=np.uint16))
    array([ 1., -3.], dtype=float32)
    """
    numbers = np.empty(halves.shape, dtype=np.float32)
    bits = numbers.view(np.uint32)
    for at in range(0, halves.size, _CHUNK):
        part = slice(at, at + _CHUNK)
        np.left_shift(halves[part], np.uint32(16), out=bits[part], dtype=np.uint32)
    return numbers


def narrow(numbers: NDArray[Any]) -> NDArray[np.uint16]:
    """Return the bits of the nearest numbers that bfloat16 has; of two as near, the even one.

    Examples
    --------
    >>> widen(narrow(np.array([1.0, 3.14159, -0.1])))
    array([ 1.       ,  3.140625 , -0.1000977], dtype=float32)
    """
    halves = np.empty(numbers.shape, dtype=HALF)
    for at in range(0, numbers.size, _CHUNK):
        part = slice(at, at + _CHUNK)
        single = np.asarray(numbers[part], dtype=np.float32)
        bits = single.view(np.uint32)
        rounded = (bits + (np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1)))) >> 16
        halves[part] = np.where(np.isnan(single), 0x7FC0, rounded)
    return halves
