"""MATLAB files up to version 7 (the v5 format): numbers, sparse matrices, text and cells of text.

This is our own reader because a damaged file can crash SciPy's, both while reading and later, when
the index arrays of a sparse matrix are used.  Here every element is a slice of bytes whose length
has been checked, and NumPy receives nothing else.  Objects, functions and structures are skipped.

The layout (MathWorks, "MAT-File Format", level 5): 128 bytes of header, then elements, each a tag
(type and size) and its bytes.  An element is a matrix, or zlib data that unpack to one.  A matrix
begins with its flags, its shape and its name.  `survey_mat` reads these headers and checks every
size without keeping values; the values of the chosen variables are read afterwards.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ratoon.datasets.arrays import check_compressed
from ratoon.datasets.files import MIB, Limits, open_regular
from ratoon.datasets.formats.named_arrays import (
    choose_label,
    choose_matrix,
    choose_names,
    describe_choice,
)
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.errors import FormatError

INT8, INT32, UINT32, MATRIX, COMPRESSED = 1, 5, 6, 14, 15
CELL, CHAR, SPARSE = 1, 4, 5
_NUMBERS = range(6, 16)
_COMPLEX = 0x08
_ITEM_SIZE = {6: 8, 7: 4, 8: 1, 9: 1, 10: 2, 11: 2, 12: 4, 13: 4, 14: 8, 15: 8}


@dataclass(frozen=True)
class Variable:
    """One variable: its class, its shape, and the position of its bytes."""

    kind: int
    shape: tuple[int, ...]
    is_complex: bool
    order: str
    position: int
    n_stored: int
    n_bytes: int
    is_compressed: bool

    @property
    def is_numeric(self) -> bool:
        """Whether it contains real numbers, dense or sparse."""
        return (self.kind in _NUMBERS or self.kind == SPARSE) and not self.is_complex

    @property
    def may_be_text(self) -> bool:
        """Whether it is a character array, or a cell, which may contain text."""
        return self.kind in (CHAR, CELL)


def survey_mat(path: Path, limits: Limits) -> dict[str, Variable]:
    """Return the variables of a file by name, in order, after checking every size in it."""
    with open_regular(path, limits) as file:
        header = file.read(128)
        order = {b"IM": "<", b"MI": ">"}.get(header[126:128])
        if len(header) < 128 or order is None:
            raise FormatError(
                f"{path}: not a MATLAB file of version 5 to 7.\n"
                "  Save a file of version 4 again with MATLAB's save -v7."
            )
        variables: dict[str, Variable] = {}
        for name, variable in _variables(path, file, order, limits):
            if name in variables:
                raise FormatError(f"{path}: variable {name!r} occurs twice; the file is damaged.")
            variables[name] = variable
        if not variables:
            raise FormatError(
                f"{path}: the MATLAB file has no variables; save it again with a matrix."
            )
        return variables


def _variables(
    path: Path, file: IO[bytes], order: str, limits: Limits
) -> Iterator[tuple[str, Variable]]:
    file_size = file.seek(0, 2)
    position, n_expanded = 128, 0
    while position < file_size:
        file.seek(position)
        tag = file.read(8)
        if len(tag) < 8:
            raise FormatError(f"{path}: cut off inside a tag at byte {position}; copy it again.")
        kind, size = struct.unpack(order + "II", tag)
        if size > file_size - position - 8:
            raise FormatError(
                f"{path}: cut off: the variable at byte {position} should have {size} bytes, but"
                f" only {file_size - position - 8} follow. Copy or download the file again."
            )
        is_compressed = kind == COMPRESSED
        if is_compressed:
            chunks = unpack(path, file, size)
            head = next(chunks, b"")
            inner = len(head)
            for chunk in chunks:
                inner += len(chunk)
                limits.check_expanded(str(path), n_expanded + inner, file_size)
            n_expanded += inner
            kind, claimed = struct.unpack(order + "II", head[:8].ljust(8, b"\0"))
            if kind == MATRIX and claimed > inner - 8:
                raise FormatError(
                    f"{path}: the variable at byte {position} is cut off; copy it again."
                )
            head, inner = head[8:], inner - 8
        else:
            head, inner = file.read(min(size, MIB)), size
        if kind != MATRIX:
            raise FormatError(
                f"{path}: unknown element {kind} at byte {position}; the file is damaged."
            )
        name, kind, shape, is_complex, _ = read_header(path, head, inner, order, limits)
        place = (position + 8, size, inner)
        yield name, Variable(kind, shape, is_complex, order, *place, is_compressed)
        position += 8 + size


def unpack(path: Path, file: IO[bytes], size: int) -> Iterator[bytes]:
    """Yield the unpacked bytes of the next ``size`` stored ones, a mebibyte at a time."""
    inflate, left = zlib.decompressobj(), size
    try:
        while left and not inflate.eof:
            stored = file.read(min(MIB, left))
            left -= len(stored)
            while stored and not inflate.eof:
                yield inflate.decompress(stored, MIB)
                stored = inflate.unconsumed_tail
    except zlib.error as error:
        raise FormatError(
            f"{path}: damaged compressed variable ({error}); copy it again."
        ) from None
    if not inflate.eof:
        raise FormatError(f"{path}: a compressed variable is cut off; copy the file again.")


def read_header(
    path: Path, body: bytes, size: int, order: str, limits: Limits
) -> tuple[str, int, tuple[int, ...], bool, int]:
    """Return name, class, shape and complexity of a matrix, and the position of its values."""
    try:
        (flags, _), position = _integers(body, 0, order, UINT32, 2)
        shape, position = _integers(body, position, order, INT32, None)
        name, position = sub_element(body, position, order, INT8)
    except (struct.error, ValueError) as error:
        raise FormatError(f"{path}: damaged header of a variable ({error}).") from None
    kind, where = flags & 0xFF, f"{path}, variable {name.decode('latin-1')!r}"
    if len(shape) < 2 or min(shape) < 0:
        raise FormatError(f"{where}: {shape} is not the shape of an array; the file is damaged.")
    itemsize = 0 if kind == SPARSE else _ITEM_SIZE.get(kind, 8)
    limits.check_shape(where, shape[0], prod(shape[1:]), itemsize)
    # An entry takes at least one byte, except in a sparse matrix.
    if kind != SPARSE and prod(shape) > size:
        raise FormatError(f"{where}: shape {shape} in {size} bytes; the file is damaged.")
    return name.decode("latin-1"), kind, shape, bool((flags >> 8) & _COMPLEX), position


def _integers(
    body: bytes, position: int, order: str, kind: int, count: int | None
) -> tuple[tuple[int, ...], int]:
    raw, after = sub_element(body, position, order, kind)
    if len(raw) % 4 or len(raw) > 128 or (count is not None and len(raw) != 4 * count):
        raise ValueError(f"{len(raw)} bytes of integers")
    letter = "I" if kind == UINT32 else "i"
    return struct.unpack(f"{order}{len(raw) // 4}{letter}", raw), after


def sub_element(body: bytes, position: int, order: str, kind: int) -> tuple[bytes, int]:
    """Return the bytes of a sub-element of the given kind, and the position of the next."""
    found, raw, after = any_sub_element(body, position, order)
    if found != kind:
        raise ValueError(f"element {found}, expected {kind}")
    return bytes(raw), after


def any_sub_element(body: bytes, position: int, order: str) -> tuple[int, memoryview, int]:
    """Return kind and bytes of a sub-element, and the position of the next."""
    found, size = struct.unpack_from(order + "II", body, position)
    if found >> 16:  # up to four bytes are stored inside the tag itself
        found, size, start, after = found & 0xFFFF, found >> 16, position + 4, position + 8
        if size > 4:
            raise ValueError("a small element of more than four bytes")
    else:
        start, after = position + 8, position + 8 + -(-size // 8) * 8
    if start + size > len(body):
        raise ValueError("an element longer than its container")
    return found, memoryview(body)[start : start + size], after


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
        notes=describe_choice({**tables, **texts}, matrix, label, n_samples, "variable"),
    )


class _Reader:
    """Reads the values of variables found by `survey_mat`."""

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
            " again, or save it again with MATLAB's save -v7."
        )

    def _body(self, variable: Variable) -> bytes:
        with open_regular(self._path, self._limits) as file:
            file.seek(variable.position)
            if not variable.is_compressed:
                return file.read(variable.n_stored)
            body = bytearray()
            for chunk in unpack(self._path, file, variable.n_stored):
                body += chunk
                if len(body) > variable.n_bytes + 8:
                    raise FormatError(
                        f"{self._path}: the file changed while it was read; read it again."
                    )
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
        # MATLAB may allocate more values than a matrix has entries; the last start is their number.
        used = int(starts[-1]) if starts.size else 0
        if not 0 <= used <= min(rows.size, values.size):
            raise ValueError(f"{used} entries in {values.size} values")
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
