"""Open untrusted files: `Limits` on sizes, checked before anything is parsed."""

from __future__ import annotations

import hashlib
import math
import os
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ratoon.errors import FormatError, InvalidInputError, InvalidParameterError, RatoonError, near

MIB = 2**20
GIB = 2**30
_MOST_DEFLATE = 1100  # deflate compresses nothing by more than a factor of 1032


@dataclass(frozen=True)
class Limits:
    """Limits that every reader checks *before* it allocates or unpacks.

    The defaults accept every public expression set we know of and stop decompression bombs within a
    fraction of a second.  Raise a limit by name if a file that you trust needs it.

    Parameters
    ----------
    file_bytes : int
        Largest size of a file on disk.
    expanded_bytes : int
        Largest unpacked size of a compressed file.
    expansion : float
        Largest ratio of unpacked to stored bytes; applies once more than `free_bytes` are unpacked.
    free_bytes : int
        Unpacked bytes below which any ratio is accepted: harmless matrices that are mostly zero
        can be compressed by a factor of several hundred.
    rows, columns : int
        Largest number of samples or features.
    array_bytes : int
        Largest single array: rows x columns x bytes per value.
    line_bytes : int
        Longest line of a text file.

    Examples
    --------
    >>> Limits(rows=10).check_shape("small.csv", 20, 3)
    Traceback (most recent call last):
    ...
    ratoon.errors.FormatError: small.csv: 20 rows, the limit is 10.
      If you trust the file, pass limits=Limits(rows=20).
    """

    file_bytes: int = 16 * GIB
    expanded_bytes: int = 16 * GIB
    expansion: float = 100.0
    free_bytes: int = 256 * MIB
    rows: int = 20_000_000
    columns: int = 20_000_000
    array_bytes: int = 8 * GIB
    line_bytes: int = 64 * MIB

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise InvalidParameterError(f"Limits: `{name}` must be positive, got {value!r}.")

    def check_file(self, source: str, n_bytes: int) -> None:
        """Raise if a file of ``n_bytes`` is too large to open."""
        if n_bytes > self.file_bytes:
            self._refuse(source, f"{n_bytes} bytes", "file_bytes", n_bytes)

    def check_expanded(self, source: str, n_expanded: int, n_stored: int) -> None:
        """Raise if ``n_stored`` bytes unpack to more than the limits allow."""
        if n_expanded > self.expanded_bytes:
            self._refuse(
                source, f"unpacks to at least {n_expanded} bytes", "expanded_bytes", n_expanded
            )
        if n_expanded > self.free_bytes and n_expanded > self.expansion * max(1, n_stored):
            ratio = math.ceil(n_expanded / max(1, n_stored))
            self._refuse(
                source,
                f"{n_stored} stored bytes unpack to at least {n_expanded}, {ratio} times as many",
                "expansion",
                max(2 * ratio, _MOST_DEFLATE),
            )

    def check_shape(self, source: str, rows: int, columns: int, itemsize: int = 0) -> None:
        """Raise if a matrix of this shape is larger than the limits allow."""
        if rows > self.rows:
            self._refuse(source, f"{rows} rows", "rows", rows)
        if columns > self.columns:
            self._refuse(source, f"{columns} columns", "columns", columns)
        n_bytes = rows * columns * itemsize
        if n_bytes > self.array_bytes:
            what = f"an array of {rows} x {columns} values, {n_bytes} bytes"
            self._refuse(source, what, "array_bytes", n_bytes)

    def check_line(self, source: str, line: int, n_bytes: int) -> None:
        """Raise if a line of text is longer than the limit."""
        if n_bytes > self.line_bytes:
            what = f"line {line} has at least {n_bytes} bytes"
            self._refuse(source, what, "line_bytes", 2 * n_bytes)

    def _refuse(self, source: str, what: str, name: str, needed: int) -> None:
        raise FormatError(
            f"{source}: {what}, the limit is {getattr(self, name):.12g}.\n"
            f"  If you trust the file, pass limits=Limits({name}={needed})."
        )


GZIP_MAGIC = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_CHUNK = MIB
_HEAD = _CHUNK // 16


def survey(path: Path, limits: Limits) -> str:
    """Return the SHA-256 of a file after checking its kind, its size and its unpacked size.

    A gzip file is unpacked once here, in chunks that are discarded, so a decompression bomb is
    found before a parser keeps any of the output.
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
    """Open a file for reading; raise if it is not a regular file, empty or too large."""
    try:
        # Without O_NONBLOCK, opening a named pipe waits for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise InvalidInputError(f"{path}: no such file.{_near_names(path)}") from None
    except OSError as error:
        raise InvalidInputError(f"{path}: cannot be opened ({error.strerror}).") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InvalidInputError(
                f"{path}: not a regular file; folders, devices and pipes cannot be read."
            )
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
        names = sorted(p.name for p in path.parent.iterdir())
    except OSError:
        return ""
    if hint := near(path.name, names):
        return f"\n {hint}"
    alike = [name for name in names if name.lower().startswith(stem[:4])]
    return f"\n  The folder has {', '.join(alike[:5])}." if stem and alike else ""


class GzipStream:
    """Unpack gzip members in bounded chunks and check the ratio after each.

    Python's `gzip` module does not report how many stored bytes were consumed.
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
                chunk = inflate.decompress(stored, _CHUNK)
                self._n_expanded += len(chunk)
                self._limits.check_expanded(str(self._path), self._n_expanded, self._n_stored)
                if chunk:
                    yield chunk
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

    Lines end in LF, CR LF or CR, also in a mixture; a byte order mark is removed.  Only one line
    and one chunk of the file are in memory; a line above the limit is refused before it is
    complete.
    """
    for block in read_blocks(path, limits):
        yield from block.split(b"\n")


def read_blocks(path: Path, limits: Limits) -> Iterator[bytes]:
    """Yield what `read_lines` yields in blocks of whole lines, joined by LF; a short one first."""
    with open_regular(path, limits) as file:
        head = file.read(_HEAD)
        if head.startswith(GZIP_MAGIC):
            chunks = GzipStream(file, path, limits, head=head).chunks()
        else:
            chunks = _stored_chunks(file, head)
        rest: list[bytes] = []
        n_rest, number = 0, 1
        for chunk in _with_newlines(chunks):
            if b"\0" in chunk:
                if head.startswith((b"\xff\xfe", b"\xfe\xff")):
                    raise FormatError(
                        f"{path}: the text is UTF-16, which is not supported.\n"
                        "  Save the file as UTF-8 (in Excel: 'CSV UTF-8')."
                    )
                place = number + chunk[: chunk.index(b"\0")].count(b"\n")
                raise FormatError(
                    f"{path}: line {place} has a zero byte; this is not a text file, or it was"
                    f" damaged.\n  Save or download it again; if it is not text, pass"
                    " format=."
                )
            first, last = chunk.find(b"\n"), chunk.rfind(b"\n")
            n_rest += len(chunk) if first < 0 else first
            limits.check_line(str(path), number, n_rest)
            if first < 0:
                rest.append(chunk)
                continue
            rest.append(chunk[:last])
            yield b"".join(rest)
            number += chunk.count(b"\n")
            rest, n_rest = [chunk[last + 1 :]], len(chunk) - last - 1
        if n_rest:
            yield b"".join(rest)


def _with_newlines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield chunks of text whose lines all end in LF, without a byte order mark."""
    mark, held = _BOM, b""
    for chunk in chunks:
        if held or b"\r" in chunk:
            chunk = held + chunk
            held = b"\r" if chunk.endswith(b"\r") else b""  # the LF may be in the next chunk
            chunk = chunk.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        yield chunk.removeprefix(mark)
        mark = b""
    if held:
        yield b"\n"


def _stored_chunks(file: IO[bytes], head: bytes) -> Iterator[bytes]:
    chunk = head
    while chunk:
        yield chunk
        chunk = file.read(_CHUNK)


def first_bytes(path: Path, limits: Limits, count: int = 65536) -> bytes:
    """Return the first bytes of a file, unpacked if it is gzipped, without a byte order mark."""
    with open_regular(path, limits) as file:
        head = file.read(count)
        if head.startswith(GZIP_MAGIC):
            head = next(GzipStream(file, path, limits, head=head).chunks(), b"")[:count]
        return head.removeprefix(_BOM)
