"""ID maps: what one file calls a feature, and what a model calls it."""

from __future__ import annotations

import os
from pathlib import Path

from ratoon.datasets.files import read_lines
from ratoon.datasets.limits import Limits
from ratoon.errors import FormatError


def read_id_map(path: str | os.PathLike[str], *, limits: Limits | None = None) -> dict[str, str]:
    """Read pairs of names, one per line: first as in the data, then as the model knows it.

    A tab, a comma, a semicolon or spaces stand between; further fields and lines that begin with
    ``#`` are left out.
    """
    source = Path(path)
    pairs: dict[str, str] = {}
    for number, line in enumerate(read_lines(source, limits or Limits()), start=1):
        text = line.decode("utf-8", errors="replace").strip("\r\n\ufeff")
        if not text.strip() or text.startswith("#"):
            continue
        separator = next((mark for mark in "\t,;" if mark in text), None)
        fields = [field.strip().strip('"') for field in text.split(separator)]
        if len(fields) < 2 or not fields[0] or not fields[1]:
            raise FormatError(
                f"{source}, line {number}: not a pair of names: {text[:60]!r}.\n"
                f"  An ID map has two columns: the name in the data, the name the model knows."
            )
        if pairs.setdefault(fields[0], fields[1]) != fields[1]:
            raise FormatError(
                f"{source}, line {number}: {fields[0]!r} is both {pairs[fields[0]]!r} and"
                f" {fields[1]!r}; leave one of the lines."
            )
    if not pairs:
        raise FormatError(f"{source}: no pairs of names in it.")
    return pairs
