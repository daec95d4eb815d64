"""Data of R (``.rds``, ``.RData``), by the package rdata, which runs no R code.

A data frame or a matrix with names is read like a text table.  Of a list, or of several variables,
one holds the samples and one the labels, as in ``.npz``.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ratoon.datasets.arrays import check_compressed
from ratoon.datasets.files import GZIP_MAGIC, Limits, open_regular
from ratoon.datasets.formats.named_arrays import choose_label, choose_matrix, describe_choice
from ratoon.datasets.optional import require
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.datasets.tables.orientation import is_name_heading, orientation_of
from ratoon.datasets.tables.table import Table, samples_from_table
from ratoon.errors import FormatError, InvalidInputError, RatoonError, near

R_MAGIC = (b"RDX2\n", b"RDX3\n", b"X\n\x00\x00\x00", b"A\n2\n", b"A\n3\n")
BZIP2_MAGIC, XZ_MAGIC = b"BZh", b"\xfd7zXZ\x00"
_CHUNK, _PIECE = 2**20, 2**24


def read_r_data(path: Path, options: ReadOptions) -> Parsed:
    """Read one data frame or matrix; ``matrix=`` and ``label=`` name variables or list entries."""
    rdata = require("rdata", f"to read {path.name}", extra="r")
    content = _unpacked(path, options.limits)
    try:
        how = {"altrep_constructor_dict": _bounded(rdata, path, options.limits)}
        parsed = rdata.parser.parse_data(content, extension=_kind(content), **how)
        found = rdata.conversion.convert(parsed, default_encoding="utf-8")
        return _samples(path, found, options)
    except (RatoonError, MemoryError):
        raise
    except Exception as error:  # rdata raises whatever a damaged file leads to
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"
        raise FormatError(
            f"{path}: damaged, or R data that cannot be read ({reason}).\n"
            "  In R, save a matrix or a data frame: saveRDS(as.matrix(x), file)."
        ) from None


def _samples(path: Path, found: Any, options: ReadOptions) -> Parsed:
    if isinstance(found, Mapping) and len(found) == 1:
        found = next(iter(found.values()))
    if not isinstance(found, Mapping):
        return _one(path, found, options)
    return _several(path, {str(name): value for name, value in found.items()}, options)


def _bounded(rdata: Any, path: Path, limits: Limits) -> dict[bytes, Any]:
    """Return how to build compact vectors; sequences are stored as their length alone."""

    def checked(build: Any) -> Any:
        def run(state: Any) -> Any:
            length = float(state.value[0])
            if not 0 <= length <= limits.rows:
                raise FormatError(
                    f"{path}: a sequence of {length:g} numbers, the limit is {limits.rows}.\n"
                    f"  If you trust the file, pass limits=Limits(rows=...) with more."
                )
            return build(state)

        return run

    known = rdata.parser.DEFAULT_ALTREP_MAP
    return {
        name: checked(build) if name.startswith(b"compact") else build
        for name, build in known.items()
    }


def _kind(content: bytes) -> str:
    return ".rda" if content.startswith(b"RDX") else ".rds"


def _one(path: Path, value: Any, options: ReadOptions) -> Parsed:
    """Return the samples in a data frame, a matrix or a sparse matrix."""
    if hasattr(value, "columns"):
        return samples_from_table(_frame_as_table(path, value, options), options)
    if hasattr(value, "Dimnames") and hasattr(value, "p"):
        return _sparse_matrix(path, value, options)
    array = np.asarray(value)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise FormatError(
            f"{path}: holds {type(value).__name__} of {array.ndim} dimensions; expected a matrix of"
            " numbers or a data frame.\n  In R: saveRDS(as.matrix(x), file)."
        )
    rows, columns = (_dimension_names(value, axis) for axis in (0, 1))
    if rows is None or columns is None:
        return Parsed(array, feature_names=columns, sample_names=rows)
    return _named_matrix(path, array, rows, columns, options)


def _named_matrix(
    path: Path, matrix: NDArray[Any], rows: list[str], columns: list[str], options: ReadOptions
) -> Parsed:
    """Return the samples of a matrix whose rows and columns have names, in either orientation."""
    table = Table(str(path), ["", *columns], True, 0, [0], options.dtype)
    for number, name in enumerate(rows, 1):
        table.add_row(number, [name])
    table.set_values(matrix.astype(options.dtype), {})
    return samples_from_table(table, options)


def _sparse_matrix(path: Path, value: Any, options: ReadOptions) -> Parsed:
    """Return the samples of a ``dgCMatrix`` of the R package Matrix, in either orientation."""
    n_rows, n_columns = (int(size) for size in np.asarray(value.Dim).reshape(-1)[:2])
    options.limits.check_shape(str(path), n_rows, n_columns)
    starts: NDArray[Any] = np.asarray(value.p, dtype=np.int64)
    indices: NDArray[Any] = np.asarray(value.i, dtype=np.int64)
    values = np.asarray(value.x, dtype=np.float64)
    check_compressed(starts, indices, values.size, n_columns, n_rows, source=str(path))
    matrix = sp.csc_matrix((values, indices, starts), shape=(n_rows, n_columns))
    rows, columns = (None if names is None else list(names) for names in value.Dimnames)
    in_columns, evidence = orientation_of("", columns or (), rows or (), options)
    where = "columns" if in_columns else "rows"
    notes = [f"samples are in {where}: {evidence}"]
    if in_columns:
        return Parsed(matrix.T.tocsr(), feature_names=rows, sample_names=columns, notes=notes)
    return Parsed(matrix.tocsr(), feature_names=columns, sample_names=rows, notes=notes)


def _several(path: Path, found: dict[str, Any], options: ReadOptions) -> Parsed:
    """Return the samples in one of several variables, and the labels in another."""
    shapes = {name: tuple(np.shape(value)) for name, value in found.items()}
    chosen = choose_matrix(path, shapes, options)
    elsewhere = options.label in found
    parsed = _one(path, found[chosen], replace(options, label=None) if elsewhere else options)
    n_samples = parsed.values.shape[0]
    label = choose_label(path, shapes, options, n_samples) if parsed.labels is None else None
    if label is not None:
        parsed.labels = [str(value) for value in np.asarray(found[label]).reshape(-1).tolist()]
        parsed.label_source = f"variable {label!r}"
    parsed.notes += describe_choice(shapes, chosen, label, n_samples, "variable")
    return parsed


def _frame_as_table(path: Path, frame: Any, options: ReadOptions) -> Table:
    names = [str(name) for name in frame.columns]
    options.limits.check_shape(str(path), len(frame), len(names), 8)
    columns = [np.asarray(frame.iloc[:, j]) for j in range(len(names))]
    has_names = not np.issubdtype(np.asarray(frame.index).dtype, np.number)
    rows = [str(name) for name in frame.index]
    texts = {j: column for j, column in enumerate(columns) if column.dtype.kind not in "biuf"}
    offset = int(has_names)
    place = next((j for j in texts if is_name_heading(names[j])), None)
    if options.index is not None:
        if options.index not in names:
            raise InvalidInputError(
                f"{path}: there is no column {options.index!r} for index=."
                f"{near(options.index, names)}"
            )
        place = names.index(options.index)
        texts = {j: column for j, column in enumerate(columns) if j in texts or j == place}
    elif has_names:
        place = -1  # the row names, which come first
    place = None if place is None else place + offset
    separate = [*range(offset), *(j + offset for j in texts)]
    headings = ["", *names] if has_names else names
    table = Table(str(path), headings, True, place, separate, options.dtype)
    cells = [["" if _is_missing(v) else str(v) for v in column] for column in texts.values()]
    for row in range(len(frame)):
        table.add_row(row + 1, [*rows[row : row + 1][:offset], *(column[row] for column in cells)])
    numbers = [column.astype(options.dtype) for j, column in enumerate(columns) if j not in texts]
    empty = np.empty((len(frame), 0), dtype=options.dtype)
    table.set_values(np.column_stack(numbers) if numbers else empty, {})
    return table


def _is_missing(value: Any) -> bool:
    return value is None or value != value


def _dimension_names(value: Any, axis: int) -> list[str] | None:
    """Return the names of rows or columns of a matrix that rdata read as an xarray."""
    if not hasattr(value, "dims") or value.dims[axis] not in getattr(value, "coords", {}):
        return None
    return [str(name) for name in np.asarray(value.coords[value.dims[axis]])]


def _pieces(unpack: Any, chunk: bytes) -> Iterator[bytes]:
    """Yield what a chunk unpacks to, a few megabytes at a time."""
    while True:
        piece = unpack.decompress(chunk, _PIECE)
        chunk = getattr(unpack, "unconsumed_tail", b"")  # of zlib; the others keep theirs
        yield piece
        if unpack.eof or (len(piece) < _PIECE and not chunk):
            return


def _unpacked(path: Path, limits: Limits) -> bytes:
    """Return the unpacked bytes of a file, within the limits."""
    stored = path.stat().st_size
    with open_regular(path, limits) as file:
        head = file.read(8)
        file.seek(0)
        unpack: Any = None
        if head.startswith(GZIP_MAGIC):
            unpack = zlib.decompressobj(wbits=31)
        elif head.startswith(BZIP2_MAGIC):
            unpack = bz2.BZ2Decompressor()
        elif head.startswith(XZ_MAGIC):
            unpack = lzma.LZMADecompressor(memlimit=2**30)
        parts, size = [], 0
        try:
            while chunk := file.read(_CHUNK):
                for part in [chunk] if unpack is None else _pieces(unpack, chunk):
                    parts.append(part)
                    size += len(part)
                    limits.check_expanded(str(path), size, stored)
                if unpack is not None and unpack.eof:
                    break
        except (zlib.error, OSError, lzma.LZMAError, EOFError) as error:
            raise FormatError(f"{path}: the compressed data are damaged ({error}).") from None
    return b"".join(parts)
