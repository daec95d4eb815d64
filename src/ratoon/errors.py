"""The exceptions this library raises on purpose, and the checks that raise them.

Each class also derives from the built-in exception a caller would expect, so code that catches
``ValueError`` keeps working without knowing this module.
"""

from __future__ import annotations


class RatoonError(Exception):
    """Base of every error raised on purpose by this library."""


class InvalidParameterError(RatoonError, ValueError):
    """A parameter is outside what it may be; the message says what it may be."""


class InvalidInputError(RatoonError, ValueError):
    """Data handed to the library cannot be used; the message says which and why."""


class FormatError(RatoonError, ValueError):
    """A file is damaged or is not of the format it should be; nothing of it was used."""


class DivergenceError(RatoonError, ArithmeticError):
    """Training produced a value that is not finite."""


def check_fraction(name: str, value: float, *, owner: str) -> None:
    """Raise unless ``0 <= value < 1``.

    Parameters
    ----------
    name : str
        Name of the parameter as the user wrote it.
    value : float
        What the user gave for it.
    owner : str
        Class or function the parameter belongs to.

    Raises
    ------
    InvalidParameterError
        If the value is outside [0, 1), is not a number, or cannot be compared with one.

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
