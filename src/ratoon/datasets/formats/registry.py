"""The registry of file formats: detect the format of a file and find its reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from ratoon.datasets.files import Limits, first_bytes
from ratoon.datasets.formats.arff import read_arff
from ratoon.datasets.formats.binary import refuse_known_binary
from ratoon.datasets.formats.delimited import read_delimited
from ratoon.datasets.formats.excel import is_workbook, read_excel
from ratoon.datasets.formats.h5ad import read_h5ad
from ratoon.datasets.formats.hdf5 import open_hdf5
from ratoon.datasets.formats.idx import is_idx, read_idx
from ratoon.datasets.formats.images import SUFFIXES, find_images, read_images
from ratoon.datasets.formats.libsvm import read_libsvm
from ratoon.datasets.formats.mat import read_mat
from ratoon.datasets.formats.mat73 import read_mat73
from ratoon.datasets.formats.npz import read_npz
from ratoon.datasets.formats.parquet import read_parquet
from ratoon.datasets.formats.r_data import R_MAGIC, read_r_data
from ratoon.datasets.formats.series_matrix import read_series_matrix
from ratoon.datasets.formats.soft import read_soft
from ratoon.datasets.formats.tenx import find_tenx, read_tenx
from ratoon.datasets.formats.tenx_h5 import read_tenx_h5, tenx_groups
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
    "10x_h5": read_tenx_h5,
    "excel": read_excel,
    "arff": read_arff,
    "soft": read_soft,
    "r": read_r_data,
    "idx": read_idx,
    "images": read_images,
}
"""Readers by the name of the format."""

_HDF5 = b"\x89HDF\r\n\x1a\n"
_LIBSVM_LINE = re.compile(rb"\s*[-+.\w]+([ \t]+(\d+|qid):[^\s:]+)+\s*(#.*)?")
_ARFF = re.compile(rb"(?im)\A(\s*%.*\n|\s*\n)*\s*@relation\s")
_PICKLE = re.compile(rb"\x80[\x02-\x05]|\(dp\d|\(lp\d|c[a-z_]+\n")


def format_of(path: Path, asked: str, limits: Limits) -> str:
    """Return the key of `READERS` for a file, from its first bytes and then its name."""
    if asked != "auto":
        if asked not in READERS:
            raise InvalidParameterError(
                f"read: `format` must be 'auto' or one of {', '.join(map(repr, READERS))},"
                f" got {asked!r}."
            )
        return asked
    if path.is_dir():
        is_images = find_tenx(path) is None and find_images(path, limits) is not None
        return "images" if is_images else "10x"
    head = first_bytes(path, limits)
    if head.startswith(b"PK") and is_workbook(path):
        return "excel"
    if head.startswith(R_MAGIC) or path.suffix.lower() in {".rds", ".rda", ".rdata"}:
        return "r"
    if is_idx(head):
        return "idx"
    if path.name.lower().endswith(SUFFIXES):
        raise FormatError(
            f"{path}: a single image; pass a folder of images, with one folder per class."
        )
    refuse_known_binary(path, head)
    for magic, name in ((b"PK", "npz"), (b"PAR1", "parquet"), (b"%%MatrixMarket", "10x")):
        if head.startswith(magic):
            return name
    # A version 7.3 file begins with 512 bytes of MATLAB, followed by HDF5.
    if head[512:].startswith(_HDF5) or (head.startswith(_HDF5) and path.suffix == ".mat"):
        return "mat73"
    if head.startswith(_HDF5):
        with open_hdf5(path) as file:
            return "10x_h5" if tenx_groups(file) else "h5ad"
    if head.startswith(b"MATLAB 5.0") or path.suffix == ".mat":
        return "mat"
    return _text_format(path, head)


def _text_format(path: Path, head: bytes) -> str:
    if head.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html", b"<?xml")):
        raise FormatError(
            f"{path}: this is a web page, not data; the download failed. Download the file again."
        )
    if _PICKLE.match(head):
        raise FormatError(
            f"{path}: this seems to be a pickle. Pickles can run code and are never opened; save"
            " the data in another format, for instance .npz."
        )
    expected = {".npz", ".npy", ".h5ad", ".h5", ".parquet", ".mat", ".xls", ".xlsx", ".ods"}
    if path.suffix.lower() in expected:
        is_unsupported = path.suffix.lower() in {".xls", ".npy"}
        hint = "Save it as CSV." if is_unsupported else "Copy or download it again."
        raise FormatError(f"{path}: not a {path.suffix} file that can be read. {hint}")
    if head.startswith((b"!Series_", b"!Sample_")):
        return "series_matrix"
    if head.startswith((b"^DATABASE", b"^DATASET", b"^SERIES", b"^SAMPLE", b"^PLATFORM")):
        return "soft"
    if path.suffix.lower() == ".arff" or _ARFF.search(head):
        return "arff"
    if {".libsvm", ".svm", ".svmlight"} & set(path.suffixes):
        return "libsvm"
    lines = [line for line in head.splitlines()[:20] if line and not line.startswith(b"#")]
    complete = lines[:-1] if len(lines) > 1 else lines
    if complete and all(_LIBSVM_LINE.fullmatch(line) for line in complete):
        return "libsvm"
    return "csv"
