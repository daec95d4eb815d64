"""Survival targets: every form in which users have events and times."""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.samples.checked import refuse_misleading

EVENT_NAMES = ("event", "status", "dead", "death", "cens", "censor", "fstat", "vital_status", "e")
_HOW = (
    "Give y as scikit-survival does: an array with a field of truth values (the event was observed)"
    " and one of times; or a table with two such columns; or an array of two columns, one of which"
    " holds only 0 and 1."
)


def checked_survival(y: Any) -> Array:
    """Return events (0 or 1) and times as an array of two columns.

    Examples
    --------
    >>> checked_survival(np.array([(True, 2.5)], dtype=[("dead", bool), ("days", float)])).tolist()
    [[1.0, 2.5]]
    >>> checked_survival([[2.5, 1], [3.5, 0]]).tolist()
    [[1.0, 2.5], [0.0, 3.5]]
    """
    refuse_misleading(y, "y")
    event, time = _columns(y)
    try:
        events = np.asarray(event, dtype=np.float64)
        times = np.asarray(time, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"y must hold numbers and truth values: {error}.\n  {_HOW}"
        ) from None
    if not np.isin(events, (0.0, 1.0)).all():
        raise InvalidInputError(f"events must be true or false, 0 or 1.\n  {_HOW}")
    if not np.isfinite(times).all() or (times < 0).any():
        raise InvalidInputError("times must be finite numbers and not negative.")
    return np.column_stack([events, times])


def _columns(y: Any) -> tuple[Any, Any]:
    if hasattr(y, "columns") and hasattr(y, "to_numpy"):  # pandas, polars
        names = [str(name) for name in y.columns]
        if len(names) != 2:
            raise InvalidInputError(
                f"y is a table of {len(names)} columns; two are needed.\n  {_HOW}"
            )
        parts = [np.asarray(y[name].to_numpy()) for name in y.columns]
        return _told_apart(parts, names)
    array = np.asarray(y)
    if array.dtype.names is not None:
        if len(array.dtype.names) != 2 or array.ndim != 1:
            raise InvalidInputError(
                f"y has the fields {array.dtype.names}; two are needed.\n  {_HOW}"
            )
        return _told_apart([array[name] for name in array.dtype.names], list(array.dtype.names))
    if array.ndim != 2 or array.shape[1] != 2:
        raise InvalidInputError(f"y has shape {array.shape}.\n  {_HOW}")
    return _told_apart([array[:, 0], array[:, 1]], ["", ""])


def _told_apart(parts: list[Any], names: list[str]) -> tuple[Any, Any]:
    """Return the events and the times of two columns."""
    is_boolean = [part.dtype == bool for part in parts]
    if sum(is_boolean) != 1:
        is_boolean = [name.lower() in EVENT_NAMES for name in names]
    if sum(is_boolean) != 1:
        is_boolean = [bool(np.isin(part, (0, 1)).all()) for part in parts]
    if sum(is_boolean) != 1:
        raise InvalidInputError(f"it is not clear which column of y holds the events.\n  {_HOW}")
    place = is_boolean.index(True)
    return parts[place], parts[1 - place]
