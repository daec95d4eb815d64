"""MATLAB files up to version 7 (the v5 format): numbers, sparse matrices, text and cells of text.

A reader of our own, because SciPy's can be brought down by a damaged file, both while it reads and
later, when the index arrays of a sparse matrix are used.  Here every part is a slice of bytes whose
length was checked, and NumPy gets to see nothing else.  Objects, functions and structures are
passed over.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ratoon.datasets.arrays import check_compressed
from ratoon.datasets.files import open_regular
from ratoon.datasets.formats.mat_survey import (
    CELL,
    CHAR,
    MATRIX,
    SPARSE,
    Variable,
    any_sub_element,
    read_header,
    survey_mat,
    unpack,
)
from ratoon.datasets.formats.named_arrays import choose_label, choose_matrix, choose_names, notes_on
from ratoon.datasets.limits import Limits
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.errors import FormatError

_TYPES = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
_ENCODINGS = {1: "latin-1", 2: "latin-1", 16: "utf-8"}


def read_mat(path: Path, options: ReadOptions) -> Parsed:
    """Read the data and label variables of a v5 ``.mat`` file."""
    variables = survey_mat(path, options.limits)
    tables = {name: v.shape for name, v in variables.items() if v.is_numeric}
    texts = {name: v.shape for name, v in variables.items() if v.may_be_text}
    matrix = choose_matrix(path, tables, options)
    n_samples, n_features = tables[matrix]
    label = choose_label(path, {**tables, **texts}, options, n_samples)
    taken = {matrix, label or ""}
    reader = _Reader(path, options.limits)

    def names(kind: str, size: int) -> list[str] | None:
        found = choose_names(texts, kind, size, taken)
        return None if found is None else reader.text(found, variables[found])

    labels: list[Any] | None = None
    if label is not None and label in texts:
        labels = list(reader.text(label, variables[label]))
    elif label is not None:
        values = reader.numbers(label, variables[label])
        labels = (values.toarray() if sp.issparse(values) else values).reshape(-1).tolist()
    return Parsed(
        reader.numbers(matrix, variables[matrix]),
        labels=labels,
        feature_names=names("feature", n_features),
        sample_names=names("sample", n_samples),
        label_source=f"variable {label!r}",
        notes=notes_on({**tables, **texts}, matrix, label, n_samples, "variable"),
    )


class _Reader:
    """Values of variables that `survey_mat` has seen."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self._path, self._limits = path, limits

    def numbers(self, name: str, variable: Variable) -> Any:
        try:
            return self._numbers(self._body(variable), variable.order)
        except (struct.error, ValueError, KeyError) as error:
            raise self._damaged(name, error) from error

    def text(self, name: str, variable: Variable) -> list[str]:
        """Return one string per row of characters, or per entry of a cell."""
        body = self._body(variable)
        try:
            if variable.kind == CHAR:
                return self._rows_of_text(body, variable.order)
            return self._cell(body, variable.order)
        except (struct.error, ValueError, KeyError, UnicodeError) as error:
            raise self._damaged(name, error) from error

    def _damaged(self, name: str, error: Exception) -> FormatError:
        if isinstance(error, FormatError):
            return error
        return FormatError(
            f"{self._path}, variable {name!r}: damaged ({error}).\n  Copy or download the file"
            " again, or save it anew with MATLAB's save -v7."
        )

    def _body(self, variable: Variable) -> bytes:
        with open_regular(self._path, self._limits) as file:
            file.seek(variable.position)
            if not variable.is_compressed:
                return file.read(variable.n_stored)
            body = bytearray()
            for piece in unpack(self._path, file, variable.n_stored):
                body += piece
                if len(body) > variable.n_bytes + 8:
                    raise FormatError(f"{self._path}: the file changed while it was read.")
            return bytes(memoryview(body)[8:])

    def _header(self, body: bytes, order: str) -> tuple[int, tuple[int, ...], int]:
        _, kind, shape, _, position = read_header(self._path, body, len(body), order, self._limits)
        return kind, shape, position

    def _numbers(self, body: bytes, order: str) -> Any:
        kind, shape, position = self._header(body, order)
        if kind != SPARSE:
            values, _ = _array(body, position, order)
            return values.reshape(shape, order="F")
        rows, position = _array(body, position, order)
        starts, position = _array(body, position, order)
        values, _ = _array(body, position, order)
        # MATLAB may reserve more room than a matrix has entries; the starts tell how many count.
        used = int(starts[-1]) if starts.size else 0
        if not 0 <= used <= min(rows.size, values.size):
            raise ValueError(f"{used} entries in {values.size} places")
        rows, values = rows[:used], values[:used]
        check_compressed(starts, rows, used, shape[1], shape[0], source=str(self._path))
        indices = (rows.astype(np.int64), starts.astype(np.int64))
        return sp.csc_matrix((values, *indices), shape=shape)

    def _rows_of_text(self, body: bytes, order: str) -> list[str]:
        kind, shape, position = self._header(body, order)
        if kind != CHAR or len(shape) != 2:
            raise ValueError("not a table of characters")
        found, raw, _ = any_sub_element(body, position, order)
        utf16 = "utf-16-le" if order == "<" else "utf-16-be"
        text = bytes(raw).decode(_ENCODINGS.get(found, utf16))
        characters = np.array(list(text), dtype="U1").reshape(shape, order="F")
        return ["".join(row).strip() for row in characters.tolist()]

    def _cell(self, body: bytes, order: str) -> list[str]:
        kind, shape, position = self._header(body, order)
        if kind != CELL or len(shape) != 2:
            raise ValueError("not a cell")
        found = []
        for _ in range(shape[0] * shape[1]):
            element, raw, position = any_sub_element(body, position, order)
            if element != MATRIX:
                raise ValueError(f"element {element} in a cell")
            rows = self._rows_of_text(bytes(raw), order) if len(raw) else []
            found.append(rows[0] if rows else "")
        return found


def _array(body: bytes, position: int, order: str) -> tuple[NDArray[Any], int]:
    kind, raw, after = any_sub_element(body, position, order)
    dtype = np.dtype(order + _TYPES[kind])
    return np.frombuffer(raw, dtype=dtype), after
