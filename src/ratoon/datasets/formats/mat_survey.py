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

INT8, INT32, UINT32, MATRIX, COMPRESSED = 1, 5, 6, 14, 15
CELL, CHAR, SPARSE = 1, 4, 5
_NUMBERS = range(6, 16)
_COMPLEX = 0x08
_ITEM_SIZE = {6: 8, 7: 4, 8: 1, 9: 1, 10: 2, 11: 2, 12: 4, 13: 4, 14: 8, 15: 8}


@dataclass(frozen=True)
class Variable:
    """One variable: its class and shape, and where its bytes are."""

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
        """Real numbers, dense or sparse."""
        return (self.kind in _NUMBERS or self.kind == SPARSE) and not self.is_complex

    @property
    def may_be_text(self) -> bool:
        """Characters, or a cell, which may hold them."""
        return self.kind in (CHAR, CELL)


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
        for name, variable in _variables(path, file, order, limits):
            if name in variables:
                raise FormatError(f"{path}: variable {name!r} is stored twice.")
            variables[name] = variable
        if not variables:
            raise FormatError(f"{path}: a MATLAB file without variables.")
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
                f"{path}: cut off: the variable at byte {position} should have {size} bytes, only"
                f" {file_size - position - 8} are left. Copy or download the file again."
            )
        is_compressed = kind == COMPRESSED
        if is_compressed:
            pieces = unpack(path, file, size)
            head = next(pieces, b"")
            inner = len(head)
            for piece in pieces:
                inner += len(piece)
                limits.check_expanded(str(path), n_expanded + inner, file_size)
            n_expanded += inner
            kind, claimed = struct.unpack(order + "II", head[:8].ljust(8, b"\0"))
            if kind == MATRIX and claimed > inner - 8:
                raise FormatError(f"{path}: the variable at byte {position} is cut off.")
            head, inner = head[8:], inner - 8
        else:
            head, inner = file.read(min(size, MIB)), size
        if kind != MATRIX:
            raise FormatError(f"{path}: unknown element {kind} at byte {position}; damaged file.")
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
    """Return name, class, shape and complexity of a matrix, and where its values begin."""
    try:
        (flags, _), position = _integers(body, 0, order, UINT32, 2)
        shape, position = _integers(body, position, order, INT32, None)
        name, position = sub_element(body, position, order, INT8)
    except (struct.error, ValueError) as error:
        raise FormatError(f"{path}: damaged header of a variable ({error}).") from None
    kind, where = flags & 0xFF, f"{path}, variable {name.decode('latin-1')!r}"
    if len(shape) < 2 or min(shape) < 0:
        raise FormatError(f"{where}: {shape} is not the shape of an array.")
    itemsize = 0 if kind == SPARSE else _ITEM_SIZE.get(kind, 8)
    limits.check_shape(where, shape[0], prod(shape[1:]), itemsize)
    # Whatever it holds, an entry takes a byte; only a sparse matrix has entries without any.
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
    """Return the bytes of a part of a matrix that must be of one kind, and where the next is."""
    found, raw, after = any_sub_element(body, position, order)
    if found != kind:
        raise ValueError(f"element {found} where {kind} belongs")
    return bytes(raw), after


def any_sub_element(body: bytes, position: int, order: str) -> tuple[int, memoryview, int]:
    """Return kind and bytes of a part of a matrix, and where the next part begins."""
    found, size = struct.unpack_from(order + "II", body, position)
    if found >> 16:  # up to four bytes live inside the tag itself
        found, size, start, after = found & 0xFFFF, found >> 16, position + 4, position + 8
        if size > 4:
            raise ValueError("a small element of more than four bytes")
    else:
        start, after = position + 8, position + 8 + -(-size // 8) * 8
    if start + size > len(body):
        raise ValueError("an element longer than what holds it")
    return found, memoryview(body)[start : start + size], after
