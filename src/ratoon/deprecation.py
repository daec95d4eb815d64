"""Names that moved: the old one works for one more version, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def moved(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` that looks up moved names and warns.

    Parameters
    ----------
    module : str
        Full name of the module that had the names, usually ``__name__``.
    names : mapping
        From each old name to its new place, ``"package.module:name"``.

    Examples
    --------
    >>> import pytest
    >>> lookup = moved("ratoon.old", {"Array": "ratoon.arrays:Array"})
    >>> with pytest.warns(DeprecationWarning, match="ratoon.arrays"):
    ...     _ = lookup("Array")
    """

    def lookup(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        place, new = names[name].split(":")
        warnings.warn(
            f"{module}.{name} has moved and will be removed in the next version;"
            f" use {place}.{new}.",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(import_module(place), new)

    return lookup
