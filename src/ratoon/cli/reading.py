"""`--read KEY=VALUE`: what Python passes to `ratoon.datasets.read`, on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from ratoon.datasets import Limits
from ratoon.errors import FormatError, InvalidInputError, InvalidParameterError

_TRUTH = {"true": True, "false": False}

KEYS = (
    "sample_sheet",
    "orientation",
    "index",
    "ignore",
    "matrix",
    "duplicates",
    "unlabelled",
    "sparse",
    "format",
    "isolated",
)
"""Keys that are not options of their own; `read` says what each may be."""

_LIMIT = "limits."
_LIMITS = tuple(field.name for field in fields(Limits))
_OWN_OPTIONS = ("label", "missing")
_WORDS = ("True", "False")
_PASSED = re.compile(
    rf"\b(?P<key>{'|'.join((*KEYS, *_OWN_OPTIONS, 'limits'))})="
    r"(?P<value>'[^']*'|\([^()]*\)|Limits\(\w+=[\w.]+\)|True|False)?"
)


def reading_options(given: list[str] | None) -> dict[str, Any]:
    """Return the arguments for `read` that stand in ``KEY=VALUE`` texts.

    Examples
    --------
    >>> reading_options(["ignore=age,sex", "sparse=true"])
    {'ignore': ('age', 'sex'), 'sparse': True}
    >>> reading_options(["limits.rows=30000000"])["limits"].rows
    30000000
    """
    options: dict[str, Any] = {}
    limits: dict[str, float] = {}
    for text in given or []:
        key, separator, value = text.partition("=")
        key = key.strip().replace("-", "_")
        if separator and key.removeprefix(_LIMIT) in _LIMITS and key.startswith(_LIMIT):
            limits[key.removeprefix(_LIMIT)] = _number(text, value)
            continue
        if not separator or key not in KEYS:
            raise InvalidParameterError(
                f"--read takes KEY=VALUE with a key of {', '.join(KEYS)}, or {_LIMIT} and one of"
                f" {', '.join(_LIMITS)}; got {text!r}."
            )
        if key == "ignore":
            options[key] = tuple(name.strip() for name in value.split(","))
        else:
            options[key] = _TRUTH.get(value.strip().lower(), value.strip())
    if limits:
        options["limits"] = Limits(**limits)  # type: ignore[arg-type]
    return options


def _number(text: str, value: str) -> float:
    try:
        return float(value) if "." in value else int(value)
    except ValueError:
        raise InvalidParameterError(f"--read {text}: a number is expected.") from None


@contextmanager
def explaining_read() -> Iterator[None]:
    """Add to an error that names an argument of `read` how the command line spells it."""
    try:
        yield
    except (FormatError, InvalidInputError) as error:
        if not (spelt := spelt_for_shell(str(error))):
            raise
        raise type(error)(f"{error}\n  On the command line: {', '.join(spelt)}.") from error


def spelt_for_shell(message: str) -> list[str]:
    """Return the options that do what a message asks to be passed.

    Examples
    --------
    >>> spelt_for_shell("pass label=; or orientation='samples_in_columns', ignore=('a', 'b')")
    ['--label NAME', '--read orientation=samples_in_columns', '--read ignore=a,b']
    >>> spelt_for_shell("pass limits=Limits(rows=20)")
    ['--read limits.rows=20']
    """
    found: dict[str, None] = {}
    # An address or a file name may hold an equals sign as well; keys are the ones known.
    for match in _PASSED.finditer(message):
        key, value = match["key"], match["value"] or ""
        named = re.findall(r"'([^']*)'", value)
        if key in _OWN_OPTIONS:
            found[f"--{key} {named[0] if named else 'NAME'}"] = None
        elif key == "limits":
            found[f"--read {_LIMIT}{value.removeprefix('Limits(').rstrip(')')}"] = None
        else:
            text = ",".join(named) or (value if value in _WORDS else "NAME")
            found[f"--read {key}={text}"] = None
    return list(found)
