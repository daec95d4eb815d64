"""10x Genomics folders: ``matrix.mtx``, ``barcodes.tsv`` and ``features.tsv`` (or ``genes.tsv``).

The Matrix Market file lists ``row column value`` with genes in rows and cells in columns; indices
start at 1.  A single ``.mtx`` file is read with samples in rows, unless ``orientation`` is given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from ratoon.datasets.arrays import checked_csr
from ratoon.datasets.files import Limits, read_lines, survey
from ratoon.datasets.formats.delimited import decode
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.datasets.tables.numbers import NumberRows
from ratoon.errors import FormatError, InvalidInputError

_MATRIX = ("matrix.mtx", "matrix.mtx.gz")
_SAMPLES = ("barcodes.tsv", "barcodes.tsv.gz")
_FEATURES = ("features.tsv", "features.tsv.gz", "genes.tsv", "genes.tsv.gz")


def find_tenx(folder: Path) -> Path | None:
    """Return the matrix file of a 10x folder, or None if it is not one."""
    return _first(folder, _MATRIX)


def survey_tenx(folder: Path, limits: Limits) -> str:
    """Return one digest of the files of a folder; each is checked like a single file."""
    digest = hashlib.sha256()
    for names in (_MATRIX, _SAMPLES, _FEATURES):
        file = _first(folder, names)
        if file is not None:
            digest.update(f"{file.name} {survey(file, limits)}\n".encode())
    return digest.hexdigest()


def read_tenx(path: Path, options: ReadOptions) -> Parsed:
    """Read a 10x folder, or one Matrix Market file."""
    file = find_tenx(path) if path.is_dir() else path
    if file is None:
        raise FormatError(
            f"{path}: there is no matrix.mtx or matrix.mtx.gz in this folder, and no image; pass a"
            " 10x folder, a folder of images, or the path of a file."
        )
    if options.label is not None and options.sample_sheet is None:
        raise InvalidInputError(
            f"{path}: a 10x folder has no labels, so label= does not apply.\n"
            "  Pass a table of barcodes and labels as sample_sheet=."
        )
    matrix = _read_matrix(file, options)
    samples = _names(path, _SAMPLES, options.limits)
    features = _names(path, _FEATURES, options.limits)
    in_columns = path.is_dir() or samples is not None
    if options.orientation != "auto":
        in_columns = options.orientation == "samples_in_columns"
    if in_columns:
        matrix = matrix.T.tocsr()
    for what, known, names, size in (
        ("barcodes", _SAMPLES, samples, matrix.shape[0]),
        ("features", _FEATURES, features, matrix.shape[1]),
    ):
        if names is not None and len(names) != size:
            raise FormatError(
                f"{_first(path, known)}: {len(names)} {what}, but {file.name} has {size}.\n"
                "  One of the two is cut off or belongs to another run; copy the folder again."
            )
    where = "columns" if in_columns else "rows"
    return Parsed(
        matrix,
        sample_names=samples,
        feature_names=features,
        notes=[f"samples are in the {where} of the matrix"],
    )


def _read_matrix(file: Path, options: ReadOptions) -> sp.csr_matrix:
    lines = enumerate(read_lines(file, options.limits), 1)
    banner = decode(next(lines, (1, b""))[1]).lower().split()
    if len(banner) != 5 or banner[:3] != ["%%matrixmarket", "matrix", "coordinate"]:
        raise FormatError(f"{file}, line 1: not a Matrix Market file of coordinates.")
    if banner[3] not in ("integer", "real", "pattern") or banner[4] != "general":
        raise FormatError(
            f"{file}, line 1: {' '.join(banner[3:5])!r} matrices are not supported;"
            " save it as 'real general'."
        )
    n_rows, n_columns, n_values = _sizes(file, lines)
    options.limits.check_shape(str(file), n_rows, n_columns)
    columns = ["row", "column"] + (["value"] if banner[3] != "pattern" else [])
    entries = NumberRows(str(file), columns, b" ", "float64", options.limits)
    for number, line in lines:
        if line and not line.isspace():
            entries.add(number, b" ".join(line.split()))
    triples = entries.finish()
    for number, text in entries.text_rows.items():
        raise FormatError(f"{file}, line {number}: {text[0][:40]!r} is not a number.")
    if len(triples) != n_values:
        raise FormatError(
            f"{file}: {len(triples)} entries, but the header gives {n_values}; the file is cut off"
            " or damaged."
        )
    places = triples[:, :2]
    if not np.array_equal(places, np.floor(places)):
        raise FormatError(f"{file}: row and column indices must be integers; the file is damaged.")
    inside = (places >= 1) & (places <= (n_rows, n_columns))
    if not inside.all():
        worst = int(np.flatnonzero(~inside.all(axis=1))[0])
        raise FormatError(
            f"{file}: entry {worst + 1} is outside {n_rows} x {n_columns}; the file is damaged."
        )
    rows, cols = (places.T - 1).astype(np.int64)
    values = triples[:, 2] if len(columns) == 3 else np.ones(len(triples))
    matrix = sp.coo_matrix((values, (rows, cols)), shape=(n_rows, n_columns))
    return checked_csr(matrix, dtype=options.dtype, source=str(file))


def _sizes(file: Path, lines: Iterator[tuple[int, bytes]]) -> tuple[int, int, int]:
    for number, line in lines:
        if line.startswith(b"%") or not line or line.isspace():
            continue
        cells = line.split()
        if len(cells) != 3 or not all(cell.isdigit() and len(cell) < 19 for cell in cells):
            raise FormatError(
                f"{file}, line {number}: expected the number of rows, columns and entries."
            )
        return int(cells[0]), int(cells[1]), int(cells[2])
    raise FormatError(f"{file}: no line with the size of the matrix; the file is cut off.")


def _names(path: Path, names: tuple[str, ...], limits: Limits) -> list[str] | None:
    file = _first(path, names) if path.is_dir() else None
    if file is None:
        return None
    # Features have an identifier, a symbol and a type; only the identifier is unique.
    return [decode(line).split("\t")[0] for line in read_lines(file, limits) if line]


def _first(folder: Path, names: tuple[str, ...]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)
