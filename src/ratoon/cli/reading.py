"""`--read KEY=VALUE`: what Python passes to `ratoon.datasets.read`, on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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


def reading_options(given: list[str] | None) -> dict[str, Any]:
    """Return the arguments for `read` that stand in ``KEY=VALUE`` texts.

    Examples
    --------
    >>> reading_options(["ignore=age,sex", "sparse=true"])
    {'ignore': ('age', 'sex'), 'sparse': True}
    """
    options: dict[str, Any] = {}
    for text in given or []:
        key, separator, value = text.partition("=")
        key = key.strip().replace("-", "_")
        if not separator or key not in KEYS:
            raise InvalidParameterError(
                f"--read takes KEY=VALUE with a key of {', '.join(KEYS)}; got {text!r}."
            )
        if key == "ignore":
            options[key] = tuple(name.strip() for name in value.split(","))
        else:
            options[key] = _TRUTH.get(value.strip().lower(), value.strip())
    return options


@contextmanager
def explaining_read() -> Iterator[None]:
    """Add to an error that names an argument of `read` how the command line spells it."""
    try:
        yield
    except (FormatError, InvalidInputError) as error:
        # An address or a file name may hold an equals sign as well; keys are the ones known.
        named = [key for key in KEYS if re.search(rf"\b{key}=", str(error))]
        if not named:
            raise
        raise type(error)(
            f"{error}\n  On the command line that is --read {named[0]}=..."
        ) from error
