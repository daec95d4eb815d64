"""Objects of the configuration, taken apart key by key: rule 5."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ratoon.storage.limits import MAX_NUMBER
from ratoon.storage.rules import require


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
        """Return an integer in a range; true and 3.0 are no integers."""
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
        """Return one of a few names."""
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
        """Return an object of at most so many keys."""
        value = self._value[key]
        holds = isinstance(value, dict) and len(value) <= most
        self._require(holds, key, f"an object of at most {most} keys")
        return dict(value)

    def _require(self, holds: bool, key: str, what: str) -> None:
        require(holds, 5, f"config: {self._where}.{key} must be {what}")
