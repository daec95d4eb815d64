"""The libsvm (svmlight) text format: one sample per line, ``label index:value index:value``.

Read line by line into a CSR matrix.  Indices usually start at 1, in some files at 0; they start at
0 if a 0 occurs.  The notes contain the result.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ratoon.datasets.files import read_lines
from ratoon.datasets.formats.delimited import decode
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.datasets.tables.numbers import NotANumberError, parse_block
from ratoon.errors import FormatError, InvalidParameterError

_LARGEST_INDEX = 2**31 - 2
_BLOCK_BYTES = 2**18
_PAIRS = re.compile(rb"(\d{1,15}:[^\s:]+( (?=\S)|$))*")
_GROUP = re.compile(rb"^qid:\d+ ?")


def read_libsvm(path: Path, options: ReadOptions) -> Parsed:
    """Read a libsvm file, plain or gzipped; one label per sample."""
    if options.label is not None:
        raise InvalidParameterError(
            f"{path}: label= does not apply to libsvm files, where each line begins with its label."
            " Remove it."
        )
    labels: list[str] = []
    pairs = _Pairs(path)
    for number, line in enumerate(read_lines(path, options.limits), 1):
        cells = line.partition(b"#")[0].split()
        if not cells:
            continue
        if b":" in cells[0]:
            raise FormatError(
                f"{path}, line {number}: the line begins with a feature; it must begin with"
                " a label."
            )
        labels.append(decode(cells[0]))
        # Groups for ranking (qid) are ignored.
        pairs.add(number, _GROUP.sub(b"", b" ".join(cells[1:])))
        options.limits.check_shape(str(path), len(labels), 0)
    columns, values, counts = pairs.finish()
    if not labels:
        raise FormatError(f"{path}: no samples; the file has only blank lines and comments.")
    if not columns.size:
        raise FormatError(f"{path}: no sample has a feature; is this a libsvm file?")
    base = 0 if columns.min() == 0 else 1
    n_features = int(columns.max()) + 1 - base
    options.limits.check_shape(str(path), len(labels), n_features)
    starts = np.concatenate(([0], np.cumsum(counts)))
    shape = (len(labels), n_features)
    return Parsed(
        sp.csr_matrix((values, columns - base, starts), shape=shape),
        labels=labels,
        label_source="first cell of each line",
        notes=[f"feature indices start at {base}"],
    )


class _Pairs:
    """The ``index:value`` pairs of all lines, parsed a block of lines at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: list[bytes] = []
        self._numbers: list[int] = []
        self._counts: list[int] = []
        self._n_bytes = 0
        self._columns: list[NDArray[np.int64]] = []
        self._values: list[NDArray[np.float64]] = []

    def add(self, number: int, text: bytes) -> None:
        if not _PAIRS.fullmatch(text):
            bad = next((p for p in text.split() if not _PAIRS.fullmatch(p)), text)
            raise self._bad_pair(number, bad)
        count = text.count(b":")
        self._counts.append(count)
        if count:
            self._lines.append(text.replace(b":", b" "))
            self._numbers.append(number)
            self._n_bytes += len(text)
        if self._n_bytes > _BLOCK_BYTES:
            self._flush()

    def finish(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        self._flush()
        empty = np.empty(0)
        columns = np.concatenate([np.empty(0, dtype=np.int64), *self._columns])
        counts = np.array(self._counts, dtype=np.int64)
        return columns, np.concatenate([empty, *self._values]), counts

    def _flush(self) -> None:
        if not self._lines:
            return
        try:
            numbers, per_line = parse_block(b"\n".join(self._lines) + b"\n", b" ")
        except NotANumberError as error:
            ends = np.cumsum([line.count(b" ") + 1 for line in self._lines])
            line = self._numbers[int(np.searchsorted(ends, error.place, side="right"))]
            raise self._bad_pair(line, error.cell.encode()) from None
        columns, values = numbers[0::2].astype(np.int64), numbers[1::2]
        self._check_columns(columns, per_line // 2)
        self._columns.append(columns)
        self._values.append(values)
        self._lines, self._numbers, self._n_bytes = [], [], 0

    def _check_columns(self, columns: NDArray[np.int64], per_line: NDArray[np.int64]) -> None:
        line_of = np.repeat(np.arange(per_line.size), per_line)
        same_line = line_of[1:] == line_of[:-1]
        for wrong, what in (
            (np.flatnonzero(same_line & (np.diff(columns) <= 0)) + 1, "does not increase"),
            (np.flatnonzero(columns > _LARGEST_INDEX), "is too large"),
        ):
            if wrong.size:
                line = self._numbers[int(line_of[wrong[0]])]
                raise FormatError(
                    f"{self._path}, line {line}: feature index {columns[wrong[0]]} {what}.\n"
                    "  The indices in a line must increase, and be at most 2147483646."
                )

    def _bad_pair(self, number: int, pair: bytes) -> FormatError:
        return FormatError(
            f"{self._path}, line {number}: {decode(pair)[:40]!r} is not index:value, such as 7:0.5."
        )
