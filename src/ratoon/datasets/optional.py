"""Packages behind the ``data`` extra, imported when a file needs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ratoon.errors import RatoonError


class MissingPackageError(RatoonError, ImportError):
    """A package behind an extra is not installed; the message says how to get it."""


def require(module: str, purpose: str, *, extra: str = "data") -> Any:
    """Import a package, or say which extra brings it.

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
