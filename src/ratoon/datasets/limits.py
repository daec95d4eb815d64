"""How much a file may ask for before a reader refuses it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ratoon.errors import FormatError, InvalidParameterError

MIB = 2**20
GIB = 2**30
_MOST_DEFLATE = 1100  # deflate shrinks nothing more than 1032 times


@dataclass(frozen=True)
class Limits:
    """Bounds that every reader checks *before* it allocates or unpacks.

    The defaults let through every public expression set we know of and stop decompression bombs
    within a fraction of a second.  Raise one by name when a file of your own needs it.

    Parameters
    ----------
    file_bytes : int
        Largest file as stored on disk.
    expanded_bytes : int
        Largest size of what a compressed file unpacks to.
    expansion : float
        Largest ratio of unpacked to stored bytes, applied once more than `free_bytes` are unpacked.
    free_bytes : int
        Unpacked bytes below which no ratio is suspicious: matrices that are mostly zero shrink
        several hundred times in all honesty.
    rows, columns : int
        Largest number of samples or features.
    array_bytes : int
        Largest single array, as rows x columns x size of a value.
    line_bytes : int
        Longest line of a text file.

    Examples
    --------
    >>> Limits(rows=10).check_shape("small.csv", 20, 3)
    Traceback (most recent call last):
    ...
    ratoon.errors.FormatError: small.csv: 20 rows, and the limit is 10.
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
        """Raise if ``n_stored`` bytes unpack to a suspicious or unbearable amount."""
        if n_expanded > self.expanded_bytes:
            self._refuse(
                source, f"unpacks to at least {n_expanded} bytes", "expanded_bytes", n_expanded
            )
        if n_expanded > self.free_bytes and n_expanded > self.expansion * max(1, n_stored):
            ratio = math.ceil(n_expanded / max(1, n_stored))
            self._refuse(
                source,
                f"{n_stored} stored bytes unpack to {n_expanded} or more, {ratio} times as many",
                "expansion",
                max(2 * ratio, _MOST_DEFLATE),
            )

    def check_shape(self, source: str, rows: int, columns: int, itemsize: int = 0) -> None:
        """Raise if a matrix of this shape may not be held."""
        if rows > self.rows:
            self._refuse(source, f"{rows} rows", "rows", rows)
        if columns > self.columns:
            self._refuse(source, f"{columns} columns", "columns", columns)
        n_bytes = rows * columns * itemsize
        if n_bytes > self.array_bytes:
            what = f"an array of {rows} x {columns} values, {n_bytes} bytes"
            self._refuse(source, what, "array_bytes", n_bytes)

    def check_line(self, source: str, line: int, n_bytes: int) -> None:
        """Raise if a line of text is longer than any line of data should be."""
        if n_bytes > self.line_bytes:
            what = f"line {line} has {n_bytes} bytes or more"
            self._refuse(source, what, "line_bytes", 2 * n_bytes)

    def _refuse(self, source: str, what: str, name: str, needed: int) -> None:
        raise FormatError(
            f"{source}: {what}, and the limit is {getattr(self, name):.12g}.\n"
            f"  If you trust the file, pass limits=Limits({name}={needed})."
        )
