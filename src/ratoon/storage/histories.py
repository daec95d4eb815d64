"""Histories as arrays, one per quantity, so that ten thousand epochs do not swell the header."""

from __future__ import annotations

import math
from dataclasses import MISSING, fields
from typing import Any

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import FormatError
from ratoon.history import EpochRecord, History

PREFIX = "history/"
STATES = {"absent": 0, "finite": 1, "nan": 2, "inf": 3, "-inf": 4}
"""Arrays in files hold finite numbers only; what a number really was stands beside it."""

_FIELDS = fields(EpochRecord)
_NAMES = [item.name for item in _FIELDS]
_INTEGERS = {item.name for item in _FIELDS if item.type == "int"}
_OPTIONAL = {item.name for item in _FIELDS if "None" in str(item.type)}
_DEFAULTS = {item.name: item.default for item in _FIELDS if item.default is not MISSING}


def history_to_arrays(history: History) -> dict[str, Array]:
    """Return a history as named arrays for a `Document`.

    Examples
    --------
    >>> history = History([EpochRecord(0, 0.7, 0.1, 900, 0.02, 0, 1.0, 0.0)])
    >>> arrays = history_to_arrays(history)
    >>> arrays["history/loss"], arrays["history/validation_score.state"]
    (array([0.7]), array([0], dtype=uint8))
    >>> history_from_arrays(arrays) == history
    True
    """
    arrays: dict[str, Array] = {}
    for name in _NAMES:
        column = history.column(name)
        if name in _INTEGERS:
            arrays[PREFIX + name] = np.array(column, dtype=np.int64)
            continue
        states = [_state_of(value) for value in column]
        arrays[f"{PREFIX}{name}.state"] = np.array(states, dtype=np.uint8)
        finite = [
            value if state == STATES["finite"] else 0.0
            for value, state in zip(column, states, strict=True)
        ]
        arrays[PREFIX + name] = np.array(finite, dtype=np.float64)
    return arrays


def history_from_arrays(arrays: dict[str, Array]) -> History:
    """Take the arrays of a history out of ``arrays`` and return it.

    A quantity that did not exist yet when the file was written has its default value.

    Raises
    ------
    FormatError
        If they are not those of a history.
    """
    columns: dict[str, list[Any]] = {}
    for name in _NAMES:
        if PREFIX + name not in arrays and name in _DEFAULTS:
            columns[name] = [_DEFAULTS[name]] * len(columns["epoch"])
            continue
        values = _take(arrays, PREFIX + name, np.int64 if name in _INTEGERS else np.float64)
        column: list[Any] = values.tolist()
        if name not in _INTEGERS:
            states = _take(arrays, f"{PREFIX}{name}.state", np.uint8).tolist()
            if len(states) != len(column):
                raise FormatError(f"the arrays of the history's {name!r} differ in length.")
            column = [_value_of(*pair, name=name) for pair in zip(column, states, strict=True)]
        columns[name] = column
    if len({len(column) for column in columns.values()}) != 1:
        raise FormatError("the columns of the history differ in length.")
    rows = zip(*columns.values(), strict=True)
    return History([EpochRecord(**dict(zip(_NAMES, row, strict=True))) for row in rows])


def _state_of(value: float | None) -> int:
    if value is None:
        return STATES["absent"]
    if math.isfinite(value):
        return STATES["finite"]
    return STATES["nan" if math.isnan(value) else "inf" if value > 0 else "-inf"]


def _value_of(value: float, state: int, *, name: str) -> float | None:
    if state == STATES["finite"]:
        return value
    if state == STATES["absent"] and name in _OPTIONAL:
        return None
    for text in ("nan", "inf", "-inf"):
        if state == STATES[text]:
            return float(text)
    raise FormatError(f"a history's {name!r} cannot have the state {state}.")


def _take(arrays: dict[str, Array], name: str, dtype: Any) -> Array:
    array = arrays.pop(name, None)
    if array is None or array.ndim != 1 or array.dtype != dtype:
        raise FormatError(f"the history needs a row of {np.dtype(dtype)} named {name!r}.")
    return array
