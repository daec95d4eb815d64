"""The rules that a file must obey, the limits on its parts, and the checks of values.

`docs/file-format.md` specifies the rules.  Code that finds one broken raises `Violation`; the
functions that know the file's name turn it into a `ratoon.errors.FormatError`.

The limits bound what a reader does with a hostile file before it is refused: memory never exceeds
a small multiple of the file's own size.  Arrays are checked in chunks, so that checking a large
one needs no memory of its size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from ratoon.arrays import Array

RULES = {
    1: "a regular file of permitted size",
    2: "header length",
    3: "strict JSON",
    4: "metadata, version and digest",
    5: "configuration",
    6: "set of tensors",
    7: "type, shape and position of each tensor",
    8: "tensors fill the file",
    9: "number of connections",
    10: "tile starts",
    11: "packed indices",
    12: "values",
    13: "the native check",
    14: "connections within a limit",
}
MIB = 2**20
GIB = 2**30
MAX_FILE_BYTES = 64 * GIB
MAX_HEADER_BYTES = MIB
MAX_DEPTH = 8
"""Of the header."""
MAX_CONFIG_DEPTH = 16
MAX_TENSORS = 4096
MAX_LAYERS = 1023
"""Of one network: 1024 widths."""
MAX_NETWORKS = 1024
MAX_WIDTH = 2**31 - 1
MAX_TILE = 2**16
MAX_STATES = 2
MAX_RANK = 8
MAX_ARRAYS = 1024
MAX_NAME = 100
MAX_NUMBER = 1e30
"""Of a slope or a clip: well inside float32."""
EXACT_INTEGER = 2**53
"""Largest integer that every reader of JSON keeps exactly."""
TEXT_SLACK = 64 * MIB
TEXT_FACTOR = 3
"""Text of fixed width can take up to TEXT_SLACK + TEXT_FACTOR * file size in memory."""
CHUNK_BYTES = MIB
"""Arrays are read, written, hashed and checked in chunks of this size, which fit the cache."""


class Violation(Exception):
    """A rule is broken; the message does not name the file yet.

    Examples
    --------
    >>> print(Violation(2, "the header is 7 bytes long"))
    the header is 7 bytes long (rule 2, header length)
    """

    def __init__(self, rule: int, what: str) -> None:
        super().__init__(f"{what} (rule {rule}, {RULES[rule]})")
        self.rule = rule


def require(holds: bool, rule: int, what: str) -> None:
    """Raise `Violation` unless ``holds``."""
    if not holds:
        raise Violation(rule, what)


class Fields:
    """A JSON object with an exact set of keys; every access checks what it returns.

    Examples
    --------
    >>> fields = Fields({"n_in": 3, "grouped": True}, "layer", {"n_in", "grouped"})
    >>> fields.integer("n_in", 1, 10), fields.flag("grouped")
    (3, True)
    >>> fields.integer("n_in", 5, 10)
    Traceback (most recent call last):
    ...
    ratoon.storage.rules.Violation: config: layer.n_in must be an integer from 5 to 10 (rule 5,
    configuration)
    """

    def __init__(self, value: Any, where: str, keys: Collection[str]) -> None:
        wanted = ", ".join(sorted(keys))
        holds = isinstance(value, dict) and value.keys() == set(keys)
        require(holds, 5, f"config: {where} must be an object with the keys {wanted}")
        self._value: dict[str, Any] = value
        self._where = where

    def __getitem__(self, key: str) -> Any:
        return self._value[key]

    def integer(self, key: str, least: int, most: int) -> int:
        """Return an integer in a range; true and 3.0 are not integers."""
        value = self._value[key]
        holds = type(value) is int and least <= value <= most
        self._require(holds, key, f"an integer from {least} to {most}")
        return int(value)

    def number(self, key: str, least: float = -MAX_NUMBER, most: float = MAX_NUMBER) -> float:
        """Return a finite number in a range."""
        value = self._value[key]
        holds = type(value) in (int, float) and least <= value <= most
        self._require(holds, key, f"a number from {least:g} to {most:g}")
        return float(value)

    def flag(self, key: str) -> bool:
        """Return true or false."""
        value = self._value[key]
        self._require(type(value) is bool, key, "true or false")
        return bool(value)

    def choice(self, key: str, options: Collection[str]) -> str:
        """Return one of the given names."""
        value = self._value[key]
        self._require(type(value) is str and value in options, key, f"one of {sorted(options)}")
        return str(value)

    def listing(self, key: str, least: int, most: int) -> list[Any]:
        """Return a list whose length is in a range."""
        value = self._value[key]
        holds = isinstance(value, list) and least <= len(value) <= most
        self._require(holds, key, f"a list of {least} to {most} items")
        return list(value)

    def mapping(self, key: str, most: int) -> dict[str, Any]:
        """Return an object of at most ``most`` keys."""
        value = self._value[key]
        holds = isinstance(value, dict) and len(value) <= most
        self._require(holds, key, f"an object of at most {most} keys")
        return dict(value)

    def _require(self, holds: bool, key: str, what: str) -> None:
        require(holds, 5, f"config: {self._where}.{key} must be {what}")


def check_values(name: str, array: Array, *, least: float | None = None) -> None:
    """Raise unless every number of an array is permitted in a file: rule 12.

    Examples
    --------
    >>> check_values("weights", np.array([0.5, np.inf]))
    Traceback (most recent call last):
    ...
    ratoon.storage.rules.Violation: 'weights' holds numbers that are not finite (rule 12, values)
    """
    for part in chunks(array):
        if array.dtype.kind == "f":
            require(
                bool(np.isfinite(part).all()), 12, f"{name!r} holds numbers that are not finite"
            )
            if least is not None:
                require(bool((part >= least).all()), 12, f"{name!r} holds numbers below {least:g}")
        elif array.dtype.kind == "b":
            bits = part.view(np.uint8)
            require(bool((bits <= 1).all()), 12, f"{name!r} holds bytes other than 0 and 1")


def check_halves(name: str, array: Array) -> None:
    """Raise unless all bfloat16 numbers, given by their bits, are finite.

    Examples
    --------
    >>> check_halves("weights", np.array([0x3F80, 0x7F80], dtype=np.uint16))
    Traceback (most recent call last):
    ...
    ratoon.storage.rules.Violation: 'weights' holds numbers that are not finite (rule 12, values)
    """
    for part in chunks(array):
        finite = bool(((part & 0x7F80) != 0x7F80).all())
        require(finite, 12, f"{name!r} holds numbers that are not finite")


def chunks(array: Array) -> Iterator[Array]:
    """Yield the values of a contiguous array in flat chunks of about a megabyte."""
    flat = array.reshape(-1)
    step = CHUNK_BYTES // flat.itemsize
    for first in range(0, flat.size, step):
        yield flat[first : first + step]
