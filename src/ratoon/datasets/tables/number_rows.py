"""Lines of numbers gathered into one array, with every complaint naming its line and column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.datasets.limits import Limits
from ratoon.datasets.tables.cells import is_missing, is_number
from ratoon.datasets.tables.numbers import NotANumberError, parse_block
from ratoon.errors import FormatError

_BLOCK_BYTES = 2**18  # larger blocks fall out of the cache and take twice as long


class NumberRows:
    r"""Rows of a text table, parsed a block of lines at a time.

    Parameters
    ----------
    source : str
        Path, for messages.
    columns : sequence of str
        Names of the columns of numbers.
    delimiter : bytes
    dtype : str
    limits : Limits

    Attributes
    ----------
    text_rows : dict of int to list of str
        Rows without a single number, by their line; they are left out of the array.

    Examples
    --------
    >>> rows = NumberRows("small.csv", ["a", "b"], b",", "float32", Limits())
    >>> rows.add(2, b"1,2.5")
    >>> rows.add(3, b"NA,4")
    >>> rows.finish()
    array([[1. , 2.5],
           [nan, 4. ]], dtype=float32)
    """

    def __init__(
        self, source: str, columns: Sequence[str], delimiter: bytes, dtype: str, limits: Limits
    ) -> None:
        self._source, self._columns, self._delimiter = source, columns, delimiter
        self._dtype, self._limits = np.dtype(dtype), limits
        self._blocks: list[NDArray[Any]] = []
        self._lines: list[bytes] = []
        self._numbers: list[int] = []
        self._n_bytes = self._n_rows = 0
        self.text_rows: dict[int, list[str]] = {}

    def add(self, line_number: int, cells: bytes) -> None:
        """Take one line, without its newline and without the cells that are not numbers."""
        self._lines.append(cells)
        self._numbers.append(line_number)
        self._n_bytes += len(cells)
        if self._n_bytes > _BLOCK_BYTES:
            self._flush()

    def finish(self) -> NDArray[Any]:
        """Return all rows as an array of shape (n_rows, n_columns)."""
        self._flush()
        blocks, self._blocks = self._blocks, []
        if not blocks:
            return np.empty((0, len(self._columns)), dtype=self._dtype)
        return np.concatenate(blocks)

    def _flush(self) -> None:
        while self._lines:
            try:
                values, per_line = parse_block(b"\n".join(self._lines) + b"\n", self._delimiter)
            except NotANumberError as error:
                self._set_text_row_aside(error)
                continue
            self._check_counts(per_line)
            self._n_rows += len(self._lines)
            self._limits.check_shape(
                self._source, self._n_rows, len(self._columns), self._dtype.itemsize
            )
            with np.errstate(over="ignore"):  # what overflows is infinite and refused later
                block = values.astype(self._dtype).reshape(-1, len(self._columns))
            self._blocks.append(block)
            break
        self._lines, self._numbers, self._n_bytes = [], [], 0

    def _check_counts(self, per_line: NDArray[Any]) -> None:
        expected = len(self._columns)
        wrong = np.flatnonzero(per_line != expected)
        if wrong.size:
            line = self._numbers[int(wrong[0])]
            raise FormatError(
                f"{self._source}, line {line}: {per_line[wrong[0]]} numbers where {expected} are"
                " expected.\n  The file may be cut off here, or a name contains the delimiter and"
                " needs quotes."
            )

    def _set_text_row_aside(self, error: NotANumberError) -> None:
        """Drop the line of the offending cell if it has no number at all, else complain."""
        place = error.place
        for row, line in enumerate(self._lines):
            count = line.count(self._delimiter) + 1
            if place >= count:
                place -= count
                continue
            cells = [_text(cell) for cell in line.split(self._delimiter)]
            if any(map(is_number, cells)) or all(map(is_missing, cells)):
                raise self._not_a_number(self._numbers[row], place, cells)
            self._check_counts_of_text(self._numbers[row], len(cells))
            self.text_rows[self._numbers[row]] = cells
            del self._lines[row], self._numbers[row]
            return
        raise AssertionError("a cell beyond the last line")

    def _check_counts_of_text(self, line: int, count: int) -> None:
        if count != len(self._columns):
            raise FormatError(
                f"{self._source}, line {line}: {count} cells of text where {len(self._columns)}"
                " numbers are expected.\n  Remove the line, or start it with #."
            )

    def _not_a_number(self, line: int, place: int, cells: list[str]) -> FormatError:
        name = repr(self._columns[place]) if place < len(self._columns) else f"{place + 1}"
        hint = "Mend the cell, empty it if the value is missing, or leave the row or column out."
        if "," in cells[place] and is_number(cells[place].replace(",", ".")):
            hint = "It looks like a decimal comma: save the table with decimal points."
        return FormatError(
            f"{self._source}, line {line}, column {name}: {cells[place][:40]!r} is not a number.\n"
            f"  {hint}"
        )


def _text(cell: bytes) -> str:
    return cell.decode("utf-8", "replace").strip().strip('"').strip()
