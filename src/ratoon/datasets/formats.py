"""Which format a file has, and which reader goes with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ratoon.datasets.delimited import read_delimited
from ratoon.datasets.files import first_bytes
from ratoon.datasets.limits import Limits
from ratoon.datasets.mat import read_mat
from ratoon.datasets.npz import read_npz
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.datasets.series_matrix import read_series_matrix
from ratoon.errors import FormatError, InvalidParameterError

READERS: dict[str, Callable[[Path, ReadOptions], Parsed]] = {
    "csv": read_delimited,
    "npz": read_npz,
    "mat": read_mat,
    "series_matrix": read_series_matrix,
}
"""Readers by the name of their format."""


def format_of(path: Path, asked: str, limits: Limits) -> str:
    """Return the key of `READERS` for a file, from its first bytes, then from its name."""
    if asked != "auto":
        if asked not in READERS:
            raise InvalidParameterError(
                f"read: `format` must be 'auto' or one of {', '.join(map(repr, READERS))},"
                f" got {asked!r}."
            )
        return asked
    head = first_bytes(path, limits, 4096)
    if head.startswith(b"PK"):
        return "npz"
    if head.startswith(b"MATLAB 5.0"):
        return "mat"
    if head.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html", b"<?xml")):
        raise FormatError(
            f"{path}: this is a web page, not data; the download went wrong. Fetch it again."
        )
    if head.startswith(b"\x80") or head[:2] in (b"cc", b"(d"):
        raise FormatError(f"{path}: looks like a pickle; pickles can run code and are not opened.")
    if head.startswith((b"!Series_", b"!Sample_")):
        return "series_matrix"
    return "csv"
