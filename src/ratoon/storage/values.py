"""Rule 12: numbers that are finite, moments that are not negative, truth values that are 0 or 1.

Arrays are looked at piece by piece, so that checking a large one needs no memory of its size.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ratoon.arrays import Array
from ratoon.storage.limits import CHUNK_BYTES
from ratoon.storage.rules import require


def check_values(name: str, array: Array, *, least: float | None = None) -> None:
    """Raise unless every number of an array may stand in a file.

    Examples
    --------
    >>> check_values("weights", np.array([0.5, np.inf]))
    Traceback (most recent call last):
    ...
    ratoon.storage.rules.Violation: 'weights' holds numbers that are not finite (rule 12, values)
    """
    for part in pieces(array):
        if array.dtype.kind == "f":
            require(
                bool(np.isfinite(part).all()), 12, f"{name!r} holds numbers that are not finite"
            )
            if least is not None:
                require(bool((part >= least).all()), 12, f"{name!r} holds numbers below {least:g}")
        elif array.dtype.kind == "b":
            bits = part.view(np.uint8)
            require(bool((bits <= 1).all()), 12, f"{name!r} holds something else than 0 and 1")


def check_halves(name: str, array: Array) -> None:
    """Raise unless all bits of bfloat16 are those of finite numbers.

    Examples
    --------
    >>> check_halves("weights", np.array([0x3F80, 0x7F80], dtype=np.uint16))
    Traceback (most recent call last):
    ...
    ratoon.storage.rules.Violation: 'weights' holds numbers that are not finite (rule 12, values)
    """
    for part in pieces(array):
        finite = bool(((part & 0x7F80) != 0x7F80).all())
        require(finite, 12, f"{name!r} holds numbers that are not finite")


def pieces(array: Array) -> Iterator[Array]:
    """Yield a contiguous array as flat pieces of about a megabyte."""
    flat = array.reshape(-1)
    step = CHUNK_BYTES // flat.itemsize
    for first in range(0, flat.size, step):
        yield flat[first : first + step]
