"""The exceptions of this library, and a check that raises one.

Every class also derives from the corresponding built-in exception, so code that catches
``ValueError`` works without importing this module.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from itertools import islice
from numbers import Integral, Real
from typing import Any


class RatoonError(Exception):
    """Base class of all exceptions of this library."""


class InvalidParameterError(RatoonError, ValueError):
    """A parameter has an invalid value; the message names the valid ones."""


class InvalidInputError(RatoonError, ValueError):
    """Input data cannot be used; the message names the data and the reason."""


class FormatError(RatoonError, ValueError):
    """A file is damaged or has another format; nothing of it was used."""


class AlreadyTrainingError(RatoonError, RuntimeError):
    """Something is being trained and cannot be trained or saved at the same time."""


class NotEnoughMemoryError(InvalidParameterError, MemoryError):
    """The parameters need more memory than there is; nothing was allocated."""


class DivergenceError(RatoonError, ArithmeticError):
    """Training produced a value that is not finite."""


_MOST_NAMES = 50_000
_CUTOFF = 0.65


def near(given: object, known: Iterable[object]) -> str:
    """Return a hint on the known name that a wrong one is most like; empty if there is none.

    Upper and lower case count as the same.

    Examples
    --------
    >>> near("delimitr", ["index", "delimiter"]), near("weight", ["index", "delimiter"])
    (" Did you mean 'delimiter'?", '')
    """
    names: dict[str, str] = {}
    for name in islice(known, _MOST_NAMES):
        names.setdefault(str(name).casefold(), str(name))
    found = get_close_matches(str(given).casefold(), names, n=1, cutoff=_CUTOFF)
    return f" Did you mean {names[found[0]]!r}?" if found else ""


def check_fraction(name: str, value: float, *, owner: str) -> None:
    """Raise unless ``0 <= value < 1``.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : float
        Value of the parameter.
    owner : str
        Class or function of the parameter.

    Raises
    ------
    InvalidParameterError
        If the value is outside [0, 1) or not a number.

    Examples
    --------
    >>> check_fraction("zeta", 0.3, owner="SET")
    >>> check_fraction("zeta", 30, owner="SET")
    Traceback (most recent call last):
    ...
    ratoon.errors.InvalidParameterError: SET: `zeta` must be in [0, 1), got 30.
    """
    try:
        accepted = bool(0.0 <= value < 1.0)
    except (TypeError, ValueError):
        accepted = False
    if not accepted:
        raise InvalidParameterError(f"{owner}: `{name}` must be in [0, 1), got {value!r}.")


def check_field_types(made: Any) -> None:
    """Raise unless every field of a data class that is declared as a number or text is one.

    Parameters
    ----------
    made : dataclass instance
        Only fields declared as int, float, bool or str, or one of these or None, are checked.

    Raises
    ------
    InvalidParameterError
        For the first field of another type, and for a number that is not finite.

    Examples
    --------
    >>> from ratoon.evolution import SET
    >>> SET(every="often")
    Traceback (most recent call last):
    ...
    ratoon.errors.InvalidParameterError: SET: `every` must be a whole number, got 'often'.
    """
    for field in fields(made) if is_dataclass(made) else ():
        declared = getattr(field.type, "__name__", field.type)
        kind, _, other = str(declared).partition(" | ")
        value = getattr(made, field.name)
        if kind not in _ALLOWED or other not in ("", "None") or (other and value is None):
            continue
        if not _is_of_kind(value, kind):
            raise InvalidParameterError(
                f"{type(made).__name__}: `{field.name}` must be {_ALLOWED[kind]}, got {value!r}."
            )


_ALLOWED = {
    "int": "a whole number",
    "float": "a finite number",
    "bool": "True or False",
    "str": "a string",
}


def _is_of_kind(value: Any, kind: str) -> bool:
    is_bool = type(value).__name__ in ("bool", "bool_")
    if kind in ("bool", "str"):
        return is_bool if kind == "bool" else isinstance(value, str)
    if is_bool or not isinstance(value, Integral if kind == "int" else Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
