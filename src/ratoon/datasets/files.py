"""Opening files nobody vouches for: size, digest and unpacked size are known before parsing."""

from __future__ import annotations

import hashlib
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ratoon.datasets.limits import MIB, Limits
from ratoon.errors import FormatError, InvalidInputError, RatoonError

GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = MIB


def survey(path: Path, limits: Limits) -> str:
    """Return the SHA-256 of a file after checking its kind, its size and its unpacked size.

    A gzip file is unpacked once here, in pieces that are thrown away: a bomb is met before any
    parser keeps what comes out of it.
    """
    digest = hashlib.sha256()
    with open_regular(path, limits) as file:
        chunk = file.read(_CHUNK)
        unpacked = GzipStream(file, path, limits, head=chunk, digest=digest)
        if chunk.startswith(GZIP_MAGIC):
            for _ in unpacked.chunks():
                pass
            return digest.hexdigest()
        while chunk:
            digest.update(chunk)
            chunk = file.read(_CHUNK)
    return digest.hexdigest()


def open_regular(path: Path, limits: Limits) -> IO[bytes]:
    """Open a file for reading, unless it is a folder, a device, a pipe, empty or too large."""
    try:
        # Not to wait for a writer if the name belongs to a pipe.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise InvalidInputError(f"{path}: no such file.{_near_names(path)}") from None
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be opened ({error.strerror}).") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInputError(f"{path}: not a regular file.")
        if status.st_size == 0:
            raise FormatError(f"{path}: the file is empty; copy or download it again.")
        limits.check_file(str(path), status.st_size)
    except RatoonError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def _near_names(path: Path) -> str:
    stem = path.name.lower().split(".")[0]
    try:
        near = sorted(p.name for p in path.parent.iterdir() if p.name.lower().startswith(stem[:4]))
    except OSError:
        return ""
    return f"\n  In that folder there are {', '.join(near[:5])}." if stem and near else ""


class GzipStream:
    """Gzip members unpacked in bounded pieces, with the ratio watched all along.

    Python's own `gzip` module would do, but for the count of stored bytes consumed so far.
    """

    def __init__(
        self,
        file: IO[bytes],
        path: Path,
        limits: Limits,
        *,
        head: bytes = b"",
        digest: hashlib._Hash | None = None,
    ) -> None:
        self._file, self._path, self._limits = file, path, limits
        self._head, self._digest = head, digest
        self._n_stored = os.fstat(file.fileno()).st_size
        self._n_expanded = 0

    def chunks(self) -> Iterator[bytes]:
        """Yield the unpacked bytes, at most one mebibyte at a time."""
        inflate = zlib.decompressobj(wbits=31)
        stored = self._next_stored()
        try:
            while stored:
                piece = inflate.decompress(stored, _CHUNK)
                self._n_expanded += len(piece)
                self._limits.check_expanded(str(self._path), self._n_expanded, self._n_stored)
                if piece:
                    yield piece
                stored = inflate.unconsumed_tail
                if inflate.eof:
                    stored = inflate.unused_data or self._next_stored()
                    if not stored.rstrip(b"\0"):
                        return  # zero padding after the last member is allowed
                    inflate = zlib.decompressobj(wbits=31)
                stored = stored or self._next_stored()
        except zlib.error as error:
            raise FormatError(
                f"{self._path}: the gzip data are damaged after {self._n_expanded} unpacked bytes"
                f" ({error}); download the file again."
            ) from None
        if not inflate.eof:
            raise FormatError(
                f"{self._path}: the gzip data end too early, after {self._n_expanded} unpacked"
                " bytes; the file was cut off. Download it again."
            )

    def _next_stored(self) -> bytes:
        chunk, self._head = self._head or self._file.read(_CHUNK), b""
        if self._digest is not None:
            self._digest.update(chunk)
        return chunk


def read_lines(path: Path, limits: Limits) -> Iterator[bytes]:
    """Yield the lines of a text file, gzipped or not, without their line ends.

    Only one line and one piece of the file are in memory; a line beyond the limit is refused
    while it is being gathered.
    """
    with open_regular(path, limits) as file:
        head = file.read(_CHUNK)
        if head.startswith(GZIP_MAGIC):
            chunks = GzipStream(file, path, limits, head=head).chunks()
        else:
            chunks = _plain_chunks(file, head)
        rest: list[bytes] = []
        n_rest, number = 0, 1
        for chunk in chunks:
            if b"\0" in chunk:
                if chunk is head and head.startswith((b"\xff\xfe", b"\xfe\xff")):
                    raise FormatError(
                        f"{path}: text in UTF-16, which is not read.\n"
                        f"  Save the file as UTF-8: for Excel that is 'CSV UTF-8'."
                    )
                place = number + chunk[: chunk.index(b"\0")].count(b"\n")
                raise FormatError(
                    f"{path}: line {place} has a zero byte; this is not a text file, or it was"
                    f" damaged.\n  Save or download it again; format= names what it is if not text."
                )
            lines = chunk.split(b"\n")
            rest.append(lines[0])
            n_rest += len(lines[0])
            limits.check_line(str(path), number, n_rest)
            if len(lines) == 1:
                continue
            yield b"".join(rest).rstrip(b"\r")
            for line in lines[1:-1]:
                yield line.rstrip(b"\r")
            number += len(lines) - 1
            rest, n_rest = [lines[-1]], len(lines[-1])
        if n_rest:
            yield b"".join(rest).rstrip(b"\r")


def _plain_chunks(file: IO[bytes], head: bytes) -> Iterator[bytes]:
    chunk = head
    while chunk:
        yield chunk
        chunk = file.read(_CHUNK)


def first_bytes(path: Path, limits: Limits, count: int = 65536) -> bytes:
    """Return the beginning of a file, unpacked if it is gzipped."""
    with open_regular(path, limits) as file:
        head = file.read(count)
        if not head.startswith(GZIP_MAGIC):
            return head
        return next(GzipStream(file, path, limits, head=head).chunks(), b"")[:count]
