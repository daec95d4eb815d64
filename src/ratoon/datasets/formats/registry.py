"""Which format a file has, and which reader goes with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from ratoon.datasets.files import Limits, first_bytes
from ratoon.datasets.formats.delimited import read_delimited
from ratoon.datasets.formats.h5ad import read_h5ad
from ratoon.datasets.formats.libsvm import read_libsvm
from ratoon.datasets.formats.mat import read_mat
from ratoon.datasets.formats.mat73 import read_mat73
from ratoon.datasets.formats.npz import read_npz
from ratoon.datasets.formats.parquet import read_parquet
from ratoon.datasets.formats.series_matrix import read_series_matrix
from ratoon.datasets.formats.tenx import read_tenx
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.errors import FormatError, InvalidParameterError

READERS: dict[str, Callable[[Path, ReadOptions], Parsed]] = {
    "csv": read_delimited,
    "npz": read_npz,
    "mat": read_mat,
    "mat73": read_mat73,
    "libsvm": read_libsvm,
    "series_matrix": read_series_matrix,
    "h5ad": read_h5ad,
    "parquet": read_parquet,
    "10x": read_tenx,
}
"""Readers by the name of their format."""

_HDF5 = b"\x89HDF\r\n\x1a\n"
_LIBSVM_LINE = re.compile(rb"\s*[-+.\w]+([ \t]+(\d+|qid):[^\s:]+)+\s*(#.*)?")
_PICKLE = re.compile(rb"\x80[\x02-\x05]|\(dp\d|\(lp\d|c[a-z_]+\n")


def format_of(path: Path, asked: str, limits: Limits) -> str:
    """Return the key of `READERS` for a file, from its first bytes, then from its name."""
    if asked != "auto":
        if asked not in READERS:
            raise InvalidParameterError(
                f"read: `format` must be 'auto' or one of {', '.join(map(repr, READERS))},"
                f" got {asked!r}."
            )
        return asked
    if path.is_dir():
        return "10x"
    head = first_bytes(path, limits)
    for magic, name in ((b"PK", "npz"), (b"PAR1", "parquet"), (b"%%MatrixMarket", "10x")):
        if head.startswith(magic):
            return name
    # A 7.3 file begins with MATLAB's own 512 bytes, then HDF5's.
    if head[512:].startswith(_HDF5) or (head.startswith(_HDF5) and path.suffix == ".mat"):
        return "mat73"
    if head.startswith(_HDF5):
        return "h5ad"
    if head.startswith(b"MATLAB 5.0") or path.suffix == ".mat":
        return "mat"
    return _text_format(path, head)


def _text_format(path: Path, head: bytes) -> str:
    if head.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html", b"<?xml")):
        raise FormatError(
            f"{path}: this is a web page, not data; the download went wrong. Fetch it again."
        )
    if _PICKLE.match(head):
        raise FormatError(f"{path}: looks like a pickle; pickles can run code and are not opened.")
    expected = {".npz", ".npy", ".h5ad", ".h5", ".parquet", ".mat", ".xls", ".xlsx", ".rds", ".rda"}
    if path.suffix.lower() in expected:
        hint = "Save it as CSV." if path.suffix in (".xls", ".npy", ".rds", ".rda") else "Copy or"
        hint += "" if hint.endswith(".") else " download it again."
        raise FormatError(f"{path}: does not begin like a {path.suffix} file we read. {hint}")
    if head.startswith((b"!Series_", b"!Sample_")):
        return "series_matrix"
    if {".libsvm", ".svm", ".svmlight"} & set(path.suffixes):
        return "libsvm"
    lines = [line for line in head.splitlines()[:20] if line and not line.startswith(b"#")]
    complete = lines[:-1] if len(lines) > 1 else lines
    if complete and all(_LIBSVM_LINE.fullmatch(line) for line in complete):
        return "libsvm"
    return "csv"
