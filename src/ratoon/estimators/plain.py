"""Constructor parameters as JSON values, and back.

Only objects of listed classes can be read: a file cannot name code to run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ratoon.errors import FormatError, RatoonError
from ratoon.evolution import STRATEGIES
from ratoon.optimizers import OPTIMIZERS
from ratoon.samples.augment import Augment

EXACT_INTEGER = 2**53
"""Larger integers are written as text: not every reader of JSON keeps them exactly."""


class NotPlain(Exception):
    """A value that cannot be written to a file."""


def known_classes() -> dict[str, Callable[..., Any]]:
    """Return the classes, all of them dataclasses, whose objects can be written, by name."""
    listed = [*STRATEGIES.values(), *OPTIMIZERS.values(), Augment]
    return {made.__name__: made for made in listed if isinstance(made, type) and is_dataclass(made)}


def to_plain(value: Any) -> Any:
    """Return a value as dictionaries, lists, strings, numbers, truth values and None.

    Examples
    --------
    >>> to_plain((9000, np.int64(3)))
    {'tuple': [9000, 3]}
    >>> from ratoon.optimizers import SGD
    >>> to_plain(SGD(momentum=0.5))["object"]
    'SGD'
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= EXACT_INTEGER else {"integer": str(value)}
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotPlain
        return value
    if isinstance(value, list):
        return [to_plain(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [to_plain(item) for item in value]}
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return to_plain(value.tolist())
    if isinstance(value, dict):
        return {"pairs": [[to_plain(key), to_plain(item)] for key, item in value.items()]}
    if type(value) is known_classes().get(type(value).__name__):
        parts = {item.name: to_plain(getattr(value, item.name)) for item in fields(value)}
        return {"object": type(value).__name__, "fields": parts}
    raise NotPlain


def from_plain(value: Any) -> Any:
    """Return what `to_plain` was given.

    Examples
    --------
    >>> from ratoon.optimizers import SGD
    >>> from_plain(to_plain((1, {"a": SGD()})))
    (1, {'a': SGD(momentum=0.9, nesterov=False, weight_decay=0.0, decay='coupled')})
    """
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"tuple": list(items), **rest} if not rest:
            return tuple(from_plain(item) for item in items)
        case {"pairs": list(items), **rest} if not rest:
            return _dictionary(items)
        case {"integer": str(digits), **rest} if not rest:
            if len(digits) <= 1000 and digits.removeprefix("-").isdecimal():
                return int(digits)
        case {"object": str(name), "fields": dict(parts), **rest} if not rest:
            return _object(name, parts)
    raise FormatError(f"not a parameter value: {str(value)[:80]}")


def _dictionary(items: list[Any]) -> dict[Any, Any]:
    if not all(isinstance(item, list) and len(item) == 2 for item in items):
        raise FormatError("a dictionary must be a list of pairs")
    try:
        return {from_plain(key): from_plain(item) for key, item in items}
    except TypeError as error:
        raise FormatError(f"not a dictionary: {error}") from None


def _object(name: str, parts: dict[str, Any]) -> Any:
    made = known_classes().get(name)
    if made is None:
        raise FormatError(
            f"the file holds a {name!r}, which this version does not know.\n"
            f"  It knows {sorted(known_classes())}."
        )
    try:
        return made(**{key: from_plain(item) for key, item in parts.items()})
    except (TypeError, RatoonError) as error:
        raise FormatError(f"not a valid {name}: {error}") from None
