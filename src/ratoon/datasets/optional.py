"""Optional packages, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ratoon.errors import RatoonError


class MissingPackageError(RatoonError, ImportError):
    """An optional package is not installed; the message says how to install it."""


def require(module: str, purpose: str, *, extra: str = "data") -> Any:
    """Import an optional package, or raise an error with the extra that installs it.

    Examples
    --------
    >>> require("nosuchpackage", "to read .xyz files")
    Traceback (most recent call last):
    ...
    ratoon.datasets.optional.MissingPackageError: nosuchpackage is needed to read .xyz files.
      Install it with: pip install ratoon[data]
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = module.split(".")[0]
        raise MissingPackageError(
            f"{name} is needed {purpose}.\n  Install it with: pip install ratoon[{extra}]",
            name=name,
        ) from error
