"""A walk over a v5 ``.mat`` file that keeps nothing: what is in it, and whether it adds up.

The layout (MathWorks, "MAT-File Format", level 5): 128 bytes of header, then elements, each a tag
(type and size) and its bytes.  An element is a matrix, or zlib data that unpack to one.  A matrix
begins with its flags, its shape and its name, all that is needed here.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO

from ratoon.datasets.files import open_regular
from ratoon.datasets.limits import MIB, Limits
from ratoon.errors import FormatError

_INT8, _INT32, _UINT32, _MATRIX, _COMPRESSED = 1, 5, 6, 14, 15
_CELL, _CHAR, _SPARSE = 1, 4, 5
_NUMBERS = range(6, 16)
_COMPLEX = 0x08
_KEPT_OF_CELLS = 64 * MIB
_ITEM_SIZE = {6: 8, 7: 4, 8: 1, 9: 1, 10: 2, 11: 2, 12: 4, 13: 4, 14: 8, 15: 8}


@dataclass(frozen=True)
class Variable:
    """One variable's class and shape, and whether a cell holds text only."""

    kind: int
    shape: tuple[int, ...]
    is_complex: bool = False
    holds_text: bool = False

    @property
    def is_numeric(self) -> bool:
        """Real numbers, dense or sparse."""
        return (self.kind in _NUMBERS or self.kind == _SPARSE) and not self.is_complex

    @property
    def is_text(self) -> bool:
        """Characters, or a cell of characters."""
        return self.kind == _CHAR or self.holds_text


def survey_mat(path: Path, limits: Limits) -> dict[str, Variable]:
    """Return the variables of a file by name, in order, after checking every size in it."""
    with open_regular(path, limits) as file:
        header = file.read(128)
        order = {b"IM": "<", b"MI": ">"}.get(header[126:128])
        if len(header) < 128 or order is None:
            raise FormatError(
                f"{path}: not a MATLAB file of version 5 to 7.\n"
                "  A file of version 4 can be saved anew with MATLAB's save -v7."
            )
        variables: dict[str, Variable] = {}
        for body, size in _elements(path, file, order, limits):
            name, variable = _read_matrix_header(path, body, size, order, limits)
            if name in variables:
                raise FormatError(f"{path}: variable {name!r} is stored twice.")
            variables[name] = variable
        if not variables:
            raise FormatError(f"{path}: a MATLAB file without variables.")
        return variables


def _elements(
    path: Path, file: IO[bytes], order: str, limits: Limits
) -> Iterator[tuple[bytes, int]]:
    """Yield the beginning of each matrix and its full unpacked size."""
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
                f"{path}: cut off: the variable at byte {position} should have {size} bytes, only"
                f" {file_size - position - 8} are left. Copy or download the file again."
            )
        if kind == _COMPRESSED:
            body, inner = _unpack(path, file, size, n_expanded, file_size, limits)
            n_expanded += inner
            kind, claimed = struct.unpack(order + "II", body[:8].ljust(8, b"\0"))
            if kind == _MATRIX and claimed > inner - 8:
                raise FormatError(f"{path}: the variable at byte {position} is cut off.")
            body, inner = body[8:], inner - 8
        else:
            body, inner = file.read(min(size, _KEPT_OF_CELLS)), size
        if kind != _MATRIX:
            raise FormatError(f"{path}: unknown element {kind} at byte {position}; damaged file.")
        yield body, inner
        position += 8 + size


def _unpack(
    path: Path, file: IO[bytes], size: int, n_before: int, n_stored: int, limits: Limits
) -> tuple[bytes, int]:
    """Return the beginning of the unpacked bytes, enough for a cell of text, and their count."""
    inflate = zlib.decompressobj()
    kept: list[bytes] = []
    n_kept, n_expanded, left = 0, 0, size
    try:
        while left and not inflate.eof:
            stored = file.read(min(MIB, left))
            left -= len(stored)
            while stored and not inflate.eof:
                piece = inflate.decompress(stored, MIB)
                n_expanded += len(piece)
                limits.check_expanded(str(path), n_before + n_expanded, n_stored)
                if n_kept < _room_for(kept):
                    kept.append(piece)
                    n_kept += len(piece)
                stored = inflate.unconsumed_tail
    except zlib.error as error:
        raise FormatError(
            f"{path}: damaged compressed variable ({error}); copy it again."
        ) from None
    if not inflate.eof:
        raise FormatError(f"{path}: a compressed variable is cut off; copy the file again.")
    return b"".join(kept), n_expanded


def _room_for(kept: list[bytes]) -> int:
    """Bytes worth keeping: a header, but the whole of a cell, whose contents are looked at."""
    first = kept[0][:28] if kept else b""
    # Bytes 8 to 15 are the tag of the flags, 16 the class when the file is little-endian.
    is_cell = len(first) >= 20 and _CELL in (first[16], first[19])
    return _KEPT_OF_CELLS if is_cell else 1


def _read_matrix_header(
    path: Path, body: bytes, size: int, order: str, limits: Limits
) -> tuple[str, Variable]:
    try:
        (flags, _), position = _numbers(body, 0, order, _UINT32, 2)
        shape, position = _numbers(body, position, order, _INT32, None)
        name, position = _sub_element(body, position, order, _INT8)
    except (struct.error, ValueError, IndexError) as error:
        raise FormatError(f"{path}: damaged header of a variable ({error}).") from None
    kind, where = flags & 0xFF, f"{path}, variable {name.decode('latin-1')!r}"
    if len(shape) < 2 or min(shape) < 0:
        raise FormatError(f"{where}: {shape} is not the shape of an array.")
    itemsize = 0 if kind == _SPARSE else _ITEM_SIZE.get(kind, 8)
    limits.check_shape(where, shape[0], prod(shape[1:]), itemsize)
    # Text and cells of a declared size cost SciPy memory whether or not their bytes are there.
    if kind in (_CHAR, _CELL) and prod(shape) > size:
        raise FormatError(f"{where}: shape {shape} in {size} bytes; the file is damaged.")
    holds_text = kind == _CELL and len(body) == size and _all_text(body[position:], shape, order)
    is_complex = bool((flags >> 8) & _COMPLEX)
    return name.decode("latin-1"), Variable(kind, tuple(shape), is_complex, holds_text)


def _all_text(body: bytes, shape: tuple[int, ...], order: str) -> bool:
    position = 0
    try:
        for _ in range(prod(shape)):
            kind, size = struct.unpack_from(order + "II", body, position)
            if kind != _MATRIX or size > len(body) - position - 8:
                return False
            cell = body[position + 8 : position + 8 + size]
            (flags, _), place = _numbers(cell, 0, order, _UINT32, 2)
            inner, _ = _numbers(cell, place, order, _INT32, None)
            if flags & 0xFF != _CHAR or len(inner) != 2 or not 0 <= prod(inner) <= size:
                return False
            position += 8 + size
    except (struct.error, ValueError, IndexError):
        return False
    return True


def _numbers(
    body: bytes, position: int, order: str, kind: int, count: int | None
) -> tuple[tuple[int, ...], int]:
    raw, after = _sub_element(body, position, order, kind)
    if len(raw) % 4 or len(raw) > 128 or (count is not None and len(raw) != 4 * count):
        raise ValueError(f"{len(raw)} bytes of integers")
    letter = "I" if kind == _UINT32 else "i"
    return struct.unpack(f"{order}{len(raw) // 4}{letter}", raw), after


def _sub_element(body: bytes, position: int, order: str, kind: int) -> tuple[bytes, int]:
    found, size = struct.unpack_from(order + "II", body, position)
    if found >> 16:  # up to four bytes live inside the tag itself
        found, size, start, after = found & 0xFFFF, found >> 16, position + 4, position + 8
        if size > 4:
            raise ValueError("a small element of more than four bytes")
    else:
        start, after = position + 8, position + 8 + -(-size // 8) * 8
    if found != kind or start + size > len(body):
        raise ValueError(f"element {found} where {kind} belongs")
    return body[start : start + size], after
