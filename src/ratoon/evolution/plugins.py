"""Strategies of other packages: installed ones by name, and classes by their import path."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ratoon.errors import InvalidParameterError

GROUP = "ratoon.strategies"
"""The entry point group in which a package lists its strategies."""

_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


class StrategyNameWarning(UserWarning):
    """An installed strategy has the name of a built-in one, which is used instead."""


def installed_names() -> tuple[str, ...]:
    """Return the names of the strategies of installed packages; nothing is imported."""
    return tuple(dict.fromkeys(entry.name for entry in installed_entries()))


def installed_entries() -> list[EntryPoint]:
    """Return the entry points of the strategies of installed packages; nothing is imported."""
    return list(entry_points(group=GROUP))


def find_entry(name: str) -> EntryPoint | None:
    """Return the entry point of a name, if there is one; nothing is imported.

    Raises
    ------
    InvalidParameterError
        If two packages install different strategies under the name.
    """
    found = {entry.value: entry for entry in entry_points(group=GROUP, name=name)}
    if len(found) > 1:
        origins = " and ".join(origin_of(entry) for entry in found.values())
        raise InvalidParameterError(
            f"several installed packages have a strategy {name!r}: {origins}; uninstall one, or"
            f" import the class and pass an object."
        )
    return next(iter(found.values()), None)


def origin_of(entry: EntryPoint) -> str:
    """Return the import path of an entry point, and its package."""
    return entry.value if entry.dist is None else f"{entry.value} of {entry.dist.name}"


def warn_of_clash(name: str, built_in: Callable[..., Any]) -> None:
    """Warn, once, if an installed strategy has the name of a built-in one."""
    for entry in _installed_once():
        if entry.name == name:
            warnings.warn(
                f"{name!r} is the built-in {built_in.__name__}, not {origin_of(entry)}, which has"
                f" the same name; to use that one, import it and pass an object.",
                StrategyNameWarning,
                stacklevel=3,
            )


@cache
def _installed_once() -> tuple[EntryPoint, ...]:
    # Reading the entry points takes milliseconds: too much for every built-in name.
    return tuple(installed_entries())


def load_entry(entry: EntryPoint) -> Callable[..., Any]:
    """Import the class or function of an entry point.

    Raises
    ------
    InvalidParameterError
        If it cannot be imported or called.
    """
    return _imported(entry.value, f"the installed strategy {entry.name!r} ({origin_of(entry)})")


def load_path(path: str) -> Callable[..., Any]:
    """Import the class or function with a path such as ``package.module:Class``.

    This runs the code of the module, so the path must come from the user, never from a file.

    Raises
    ------
    InvalidParameterError
        If it cannot be imported or called.

    Examples
    --------
    >>> load_path("ratoon.evolution.rigl:RigL").__name__
    'RigL'
    >>> load_path("ratoon.evolution.rigl:Rigel")
    Traceback (most recent call last):
    ...
    ratoon.errors.InvalidParameterError: the strategy ratoon.evolution.rigl:Rigel cannot be
    imported: module 'ratoon.evolution.rigl' has no attribute 'Rigel'.
    """
    return _imported(path, f"the strategy {path}")


def _imported(path: str, what: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    try:
        found: Any = import_module(module.strip())
        for part in name.split("[")[0].strip().split("."):
            found = getattr(found, part)
    except Exception as error:
        reason = str(error) or type(error).__name__
        if not isinstance(error, ImportError | AttributeError):
            reason = f"{type(error).__name__}: {error}"
        raise InvalidParameterError(f"{what} cannot be imported: {reason}.") from error
    if not callable(found):
        raise InvalidParameterError(f"{what} is not a class or function that makes a strategy.")
    return found  # type: ignore[no-any-return]


# ---------------------------------------------------------------------------- text of the user


def is_path(name: str) -> bool:
    """Return whether a text has the form ``package.module:Class``.

    Examples
    --------
    >>> is_path("my_package.rules:Mine"), is_path("rigl"), is_path("a:b:c")
    (True, False, False)
    """
    return _PATH.fullmatch(name) is not None


def parse_strategy(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the parameters in a text such as ``rigl(zeta=0.1, every=20)``.

    Values are literals: numbers, strings, truth values, None, tuples and lists of them.  Nothing is
    evaluated.

    Raises
    ------
    InvalidParameterError
        If the text has another form.

    Examples
    --------
    >>> parse_strategy("rigl")
    ('rigl', {})
    >>> parse_strategy("package.module:Class(zeta=0.1, anneal='linear')")
    ('package.module:Class', {'zeta': 0.1, 'anneal': 'linear'})
    """
    name, parenthesis, rest = text.strip().partition("(")
    name = name.strip()
    if not parenthesis:
        return name, {}
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        # Exactly one call of f, and nothing that is called or computed in it.
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError
        given = {}
        for keyword in call.keywords:
            if keyword.arg is None:
                raise ValueError
            given[keyword.arg] = ast.literal_eval(keyword.value)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise InvalidParameterError(
            f"{text!r} is not a strategy: write a name, or a name with parameters such as"
            f" {name or 'rigl'}(zeta=0.1), whose values are numbers, quoted text, True, False or"
            f" None."
        ) from None
    return name, given


def split_strategies(text: str) -> list[str]:
    """Split a text at the commas that are outside parentheses.

    Examples
    --------
    >>> split_strategies("static, rigl(zeta=0.1, every=20),set")
    ['static', 'rigl(zeta=0.1, every=20)', 'set']
    """
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
