"""Paths as given by users, and how messages show them."""

from __future__ import annotations

import os

PathLike = str | os.PathLike[str]


def shown(path: PathLike) -> str:
    r"""Return a path that can be printed, whatever bytes its name is made of.

    Examples
    --------
    >>> shown("model\udce9.ratoon")
    'model\\udce9.ratoon'
    """
    return os.fsdecode(path).encode("utf-8", "backslashreplace").decode("utf-8")
