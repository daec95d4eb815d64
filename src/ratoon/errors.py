"""The exceptions of this library, and a check that raises one.

Every class also derives from the corresponding built-in exception, so code that catches
``ValueError`` works without importing this module.
"""

from __future__ import annotations


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
