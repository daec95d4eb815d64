"""Strict JSON: no duplicate keys, no NaN, no numbers that other readers would change.

Text is parsed by the standard library, with hooks that refuse these.  It is written in one
canonical form, so that equal documents give equal bytes.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from ratoon.errors import InvalidInputError
from ratoon.nesting import check_json_depth

MAX_DIGITS = 20
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
LEAST_INTEGER, MOST_INTEGER = -(2**63), 2**64 - 1


def parse(text: str, *, max_depth: int) -> Any:
    """Parse JSON text.

    Raises
    ------
    ValueError
        With the reason, if the text is not strict JSON or nested too deeply.

    Examples
    --------
    >>> parse('{"a": [1, 2.5, null]}', max_depth=2)
    {'a': [1, 2.5, None]}
    >>> parse('{"a": 1, "a": 2}', max_depth=2)
    Traceback (most recent call last):
    ...
    ValueError: the key 'a' occurs twice
    """
    check_json_depth(text, max_depth)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    # A lone surrogate can only come from an escape, and encoding the value finds it.
    if _SURROGATE.search(text) and not is_text(json.dumps(value, ensure_ascii=False)):
        raise ValueError("not valid Unicode: a string has a lone surrogate")
    return value


def canonical(value: Any) -> str:
    r"""Return the canonical JSON text of a value: sorted keys, no spaces, ASCII only.

    Examples
    --------
    >>> canonical({"b": 1.0, "a": [True, "é"]})
    '{"a":[true,"\\u00e9"],"b":1.0}'
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )


def check_plain(value: Any, name: str) -> None:
    """Raise unless JSON preserves a value exactly.

    Examples
    --------
    >>> check_plain({"sizes": (10, 10)}, "config")
    Traceback (most recent call last):
    ...
    ratoon.errors.InvalidInputError: `config.sizes` cannot be stored as JSON: it is a tuple.
    """
    kind = type(value)
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise InvalidInputError(f"`{name}` has the key {key!r}, which is not a string.")
            check_plain(key, f"{name} key")
            check_plain(item, f"{name}.{key}")
    elif kind is list:
        for index, item in enumerate(value):
            check_plain(item, f"{name}[{index}]")
    elif kind is str:
        if not is_text(value):
            raise InvalidInputError(f"`{name}` is not valid Unicode: {value!r}.")
    elif kind is float:
        if not math.isfinite(value):
            raise InvalidInputError(f"`{name}` cannot be stored as JSON: it is {value!r}.")
    elif kind is int:
        if not LEAST_INTEGER <= value <= MOST_INTEGER:
            raise InvalidInputError(f"`{name}` is an integer of more than 64 bits.")
    elif value is not None and kind is not bool:
        raise InvalidInputError(f"`{name}` cannot be stored as JSON: it is a {kind.__name__}.")


def is_text(text: str) -> bool:
    """Whether a string can be encoded: it has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(f"the key {key!r} occurs twice")
            seen.add(key)
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _bounded(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"the integer {text[:MAX_DIGITS]}... has too many digits")
    number = int(text)
    if not LEAST_INTEGER <= number <= MOST_INTEGER:
        raise ValueError(f"the integer {text} has more than 64 bits")
    return number


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_without_duplicates,
    parse_float=_finite,
    parse_int=_bounded,
    parse_constant=_refuse_constant,
)
