"""Read documents in one pass over the file, with every check of the file format.

The order of the checks is that of `docs/file-format.md`.  The header is checked before any array is
allocated; the digest once all bytes are in memory of our own; values and indices after that;
and objects are built last.  The bytes that were checked are the bytes used.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
from typing import Protocol

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import FormatError
from ratoon.storage.atomic import PathLike, shown
from ratoon.storage.container import (
    LENGTH_BYTES,
    Header,
    check_length,
    check_metadata,
    check_tensors,
    digest_place,
    parse_header,
)
from ratoon.storage.document import Document, Outline
from ratoon.storage.rules import CHUNK_BYTES, MAX_FILE_BYTES, Violation, require


class Source(Protocol):
    """A source of bytes."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill the buffer as far as possible, and return the number of bytes read."""
        ...


def read_document(
    path: PathLike, *, kind: str | None = None, max_bytes: int = MAX_FILE_BYTES
) -> Document:
    """Load a document after checking all of it.

    Loading executes nothing from the file, follows no path in it, and passes only checked indices
    to native code.

    Parameters
    ----------
    path : path
        A file in the format of `docs/file-format.md`, such as `write_document` writes.
    kind : {"model", "checkpoint"}, optional
        Refuse files of the other kind.
    max_bytes : int, default=64 GiB
        Refuse files that are larger.

    Raises
    ------
    FormatError
        If the file breaks a rule; the message names the file and the rule.
    OSError
        If it cannot be opened or read.
    """
    with _OpenFile(path, max_bytes) as (file, size):
        try:
            return read_source(file, size, kind=kind)
        except Violation as violation:
            raise FormatError(f"{shown(path)}: {violation}") from None


def document_from_bytes(raw: bytes) -> Document:
    """Return the document in the bytes of a file, with the checks of `read_document`.

    Raises
    ------
    FormatError
        If the bytes break a rule.
    """
    try:
        require(len(raw) >= 2 * LENGTH_BYTES, 1, f"{len(raw)} bytes are too few")
        return read_source(io.BytesIO(raw), len(raw))
    except Violation as violation:
        raise FormatError(f"not the bytes of a model file: {violation}") from None


def verify_file(path: PathLike) -> None:
    """Check header and digest of a file in constant memory.

    Raises
    ------
    FormatError
        If one of them is wrong.
    """
    with _OpenFile(path, MAX_FILE_BYTES) as (file, size):
        try:
            _Reader(file, size).skip_payload()
        except Violation as violation:
            raise FormatError(f"{shown(path)}: {violation}") from None


def read_source(source: Source, size: int, *, kind: str | None = None) -> Document:
    """Read a document of ``size`` bytes; raises `Violation`."""
    reader = _Reader(source, size)
    found = reader.header.metadata["kind"]
    require(kind in (None, found), 4, f"this is a {found}, not a {kind}")
    return reader.outline.build(found, reader.read_payload())


class _Reader:
    """Reads a file from front to back, and computes its hash."""

    def __init__(self, source: Source, size: int) -> None:
        self._source = source
        length_bytes = bytearray(LENGTH_BYTES)
        self._fill(memoryview(length_bytes))
        length = check_length(bytes(length_bytes), size)
        raw = bytearray(length)
        self._fill(memoryview(raw))
        self.header: Header = parse_header(bytes(raw))
        check_metadata(self.header.metadata)
        self._digest = self.header.metadata["digest"]
        place = digest_place(bytes(raw), self._digest)
        self.outline = Outline.parse(self.header.metadata["config"], size)
        self._payload = size - LENGTH_BYTES - length
        expected = self.outline.tensors(self.header.tensors)
        self._order = check_tensors(self.header, expected, self._payload)
        raw[place : place + 64] = b"0" * 64
        self._seen = hashlib.sha256(length_bytes)
        self._seen.update(raw)

    def read_payload(self) -> dict[str, Array]:
        """Read every tensor into an array of its own."""
        arrays: dict[str, Array] = {}
        for name in self._order:
            tensor = self.header.tensors[name]
            stored = np.empty(tensor.shape, dtype=tensor.dtype)
            if stored.size:
                self._take(stored.reshape(-1).view(np.uint8).data)
            # No copy where the machine has the byte order of the file.
            arrays[name] = stored.astype(stored.dtype.newbyteorder("="), copy=False)
        self._finish()
        return arrays

    def skip_payload(self) -> None:
        """Read every byte without keeping it."""
        buffer = memoryview(bytearray(CHUNK_BYTES))
        left = self._payload
        while left:
            part = buffer[: min(left, CHUNK_BYTES)]
            self._take(part)
            left -= part.nbytes
        self._finish()

    def _take(self, buffer: memoryview) -> None:
        for first in range(0, buffer.nbytes, CHUNK_BYTES):
            part = buffer[first : first + CHUNK_BYTES]
            self._fill(part)
            self._seen.update(part)

    def _finish(self) -> None:
        require(not self._source.readinto(memoryview(bytearray(1))), 8, "the file is too long")
        right = self._digest == f"sha256:{self._seen.hexdigest()}"
        require(right, 4, "the digest does not match the content; the file is damaged")

    def _fill(self, buffer: memoryview) -> None:
        while buffer.nbytes:
            n_read = self._source.readinto(buffer)
            require(bool(n_read), 8, "the file is too short")
            buffer = buffer[n_read:]


class _OpenFile:
    """An open regular file and its size: rule 1.  Opening never waits, not even for a FIFO."""

    def __init__(self, path: PathLike, max_bytes: int) -> None:
        flags = os.O_RDONLY
        for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"):
            flags |= getattr(os, name, 0)
        descriptor = os.open(path, flags)
        try:
            status = os.fstat(descriptor)
            self._size = status.st_size
            _check_file(path, status, max_bytes)
            self._file = io.FileIO(descriptor, "rb")
        except BaseException:
            os.close(descriptor)
            raise

    def __enter__(self) -> tuple[io.FileIO, int]:
        return self._file, self._size

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _check_file(path: PathLike, status: os.stat_result, max_bytes: int) -> None:
    size = status.st_size
    what = ""
    if not stat.S_ISREG(status.st_mode):
        what = "not a regular file"
    elif size < 2 * LENGTH_BYTES:
        what = f"{size} bytes are less than the minimum of {2 * LENGTH_BYTES}"
    elif size > max_bytes:
        what = f"{size} bytes are more than the limit of {max_bytes}"
    if what:
        raise FormatError(f"{shown(path)}: {Violation(1, what)}")
