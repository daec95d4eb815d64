"""Text cells become numbers: single cells, blocks of lines, and rows of a table.

Python's `float` takes about 300 ns per cell after the cell has been extracted; a series matrix has
16 million of them.  In such a file most cells have the same layout (``12.34567``), so `parse_block`
groups cells by length, sign and position of the decimal point.  The characters of a group form a
matrix; its product with the powers of ten is the number without its point.  With at most 15 digits,
both that integer and the power of ten that divides it are exact in float64, so the quotient is the
correctly rounded value, identical to the result of `float`.  All other cells (exponents, blanks,
quotes, missing values, text) are passed to `float` one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ratoon.datasets.files import Limits
from ratoon.datasets.tables.arrow import ArrowCells, arrow
from ratoon.datasets.tables.labels import MISSING_WORDS
from ratoon.errors import FormatError


def is_missing(cell: str) -> bool:
    """Whether a cell is empty or a word for a missing value.

    Examples
    --------
    >>> is_missing(" NA "), is_missing("0")
    (True, False)
    """
    return cell.strip().lower() in MISSING_WORDS


def is_number(cell: str) -> bool:
    """Whether a cell is a number; ``1_000``, which `float` accepts, is not.

    Examples
    --------
    >>> is_number("-1.5e3"), is_number("1_000"), is_number("TP53")
    (True, False, False)
    """
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


_MOST_DIGITS = 15
_LONGEST = _MOST_DIGITS + 2  # sign and point
_NO_POINT = 31
_MINUS, _POINT, _SLASH, _ZERO, _NINE, _NEWLINE = b"-./09\n"


class NotANumberError(ValueError):
    """A cell contains text; `place` is its index in the block, `cell` its content."""

    def __init__(self, place: int, cell: str) -> None:
        super().__init__(f"cell {place} is {cell!r}")
        self.place, self.cell = place, cell


def parse_block(block: bytes, delimiter: bytes) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    r"""Return the numbers in a block of lines, and their count per line.

    Parameters
    ----------
    block : bytes
        Complete lines, each ending in a newline.
    delimiter : bytes
        One character.

    Raises
    ------
    NotANumberError
        For a cell that is neither a number nor missing.

    Examples
    --------
    >>> parse_block(b"1.5\t-2\n\t1e3\n", b"\t")
    (array([   1.5,   -2. ,    nan, 1000. ]), array([2, 2]))
    """
    text = np.frombuffer(block, dtype=np.uint8)
    newline = text == _NEWLINE
    is_end = text == delimiter[0]
    is_end |= newline
    ends = np.flatnonzero(is_end)
    starts = np.concatenate(([0], ends[:-1] + 1))
    per_line = np.diff(_cell_at(np.flatnonzero(newline), ends), prepend=-1)

    layouts = _layouts_of_cells(text, is_end, starts, ends)
    values = np.empty(ends.size)
    padded = np.concatenate((text, np.zeros(_LONGEST, dtype=np.uint8)))
    for layout in np.flatnonzero(np.bincount(layouts)[1:]) + 1:
        same = np.flatnonzero(layouts == layout)
        values[same] = _parse_same_layout(padded, starts[same], int(layout))
    for place in np.flatnonzero(layouts == 0):
        values[place] = _parse_one(block[starts[place] : ends[place]], int(place))
    return values, per_line


def _cell_at(positions: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the index of the cell that contains each character position."""
    return np.searchsorted(ends, positions)


def _layouts_of_cells(
    text: NDArray[np.uint8],
    is_end: NDArray[np.bool_],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.int16]:
    """Encode length, position of the point and sign of each cell; 0 for any other layout."""
    lengths = ends - starts
    points = np.flatnonzero(text == _POINT)
    negative = text[starts] == _MINUS
    if points.size == ends.size and np.all((points >= starts) & (points < ends)):
        point = points - starts  # one in each cell, the usual case
        is_simple = (lengths > 0) & (lengths <= _LONGEST)
    else:
        cells = _cell_at(points, ends)
        point = np.full(ends.size, _NO_POINT, dtype=np.int64)
        point[cells] = points - starts[cells]
        is_simple = (lengths > 0) & (lengths <= _LONGEST)
        is_simple[cells[1:][cells[1:] == cells[:-1]]] = False  # two points
    minus = np.flatnonzero(text == _MINUS)
    if minus.size != np.count_nonzero(negative):
        cells = _cell_at(minus, ends)
        is_simple[cells[starts[cells] != minus]] = False  # a sign inside, as in 1e-5
    # The characters - . / 0 to 9 are consecutive, so one comparison finds all others.
    other = text - np.uint8(_MINUS) > _NINE - _MINUS
    other |= text == _SLASH
    other &= ~is_end
    is_simple[_cell_at(np.flatnonzero(other), ends)] = False
    n_digits = lengths - negative - (point != _NO_POINT)
    is_simple &= (n_digits > 0) & (n_digits <= _MOST_DIGITS)
    return np.where(is_simple, lengths * 64 + point * 2 + negative, 0).astype(np.int16)


def _parse_same_layout(
    padded: NDArray[np.uint8], starts: NDArray[np.int64], layout: int
) -> NDArray[np.float64]:
    """Parse cells with the same length, position of the point and sign."""
    length, point, negative = layout // 64, layout % 64 // 2, layout % 2
    digits = [j for j in range(negative, length) if j != point]
    weights = np.zeros(length)
    weights[digits] = 10.0 ** np.arange(len(digits))[::-1]
    characters = sliding_window_view(padded, length)[starts]
    # The code of "0" is subtracted from the sum; all values below 2**53 are exact.
    whole = characters.astype(np.float64) @ weights - _ZERO * weights.sum()
    n_decimals = 0 if point == _NO_POINT else length - 1 - point
    scale = 10.0**n_decimals
    values: NDArray[np.float64] = whole / (-scale if negative else scale)
    return values


def _parse_one(cell: bytes, place: int) -> float:
    text = cell.decode("utf-8", "replace").strip().strip('"').strip()
    if is_missing(text):
        return nan
    try:
        if "_" in text:
            raise ValueError
        return float(text)
    except ValueError:
        raise NotANumberError(place, text[:40]) from None


_BLOCK_BYTES = 2**18  # larger blocks do not fit into the cache and take twice as long


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
    n_others : int, default=0
        Cells of a line that are no numbers and not among those added, for messages.

    Attributes
    ----------
    text_rows : dict of int to list of str
        Rows without any number, by line; they are not in the array.

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
        self,
        source: str,
        columns: Sequence[str],
        delimiter: bytes,
        dtype: str,
        limits: Limits,
        n_others: int = 0,
    ) -> None:
        self._n_others = n_others
        self._source, self._columns, self._delimiter = source, columns, delimiter
        self._dtype, self._limits = np.dtype(dtype), limits
        self._blocks: list[NDArray[Any]] = []
        self._lines: list[bytes] = []
        self._numbers: list[int] = []
        self._n_bytes = self._n_rows = 0
        found = arrow()
        self._quick = None if found is None else ArrowCells(found)
        self.text_rows: dict[int, list[str]] = {}

    def add(self, line_number: int, cells: bytes) -> None:
        """Add one line, without its newline and without the cells that are not numbers."""
        self._lines.append(cells)
        self._numbers.append(line_number)
        self._n_bytes += len(cells)
        if self._n_bytes > _BLOCK_BYTES:
            self._flush()

    def add_rows(self, values: NDArray[Any]) -> None:
        """Add rows that are parsed already."""
        self._flush()
        self._keep(values)

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
                block = b"\n".join(self._lines) + b"\n"
                parsed = None if self._quick is None else self._quick(block, self._delimiter)
                values, per_line = parsed or parse_block(block, self._delimiter)
            except NotANumberError as error:
                self._set_text_row_aside(error)
                continue
            self._check_counts(per_line)
            with np.errstate(over="ignore"):  # overflow gives infinity, which is refused later
                self._keep(values.astype(self._dtype).reshape(-1, len(self._columns)))
            break
        self._lines, self._numbers, self._n_bytes = [], [], 0

    def _keep(self, rows: NDArray[Any]) -> None:
        self._n_rows += rows.shape[0]
        self._limits.check_shape(
            self._source, self._n_rows, len(self._columns), self._dtype.itemsize
        )
        self._blocks.append(rows)

    def _check_counts(self, per_line: NDArray[Any]) -> None:
        expected = len(self._columns)
        wrong = np.flatnonzero(per_line != expected)
        if wrong.size:
            line = self._numbers[int(wrong[0])]
            raise FormatError(
                f"{self._source}, line {line}: {per_line[wrong[0]] + self._n_others}"
                f" {'cells' if self._n_others else 'numbers'},"
                f" expected {expected + self._n_others}."
                "\n  The file may be cut off here, or a name contains the delimiter and"
                " needs quotes."
            )

    def _set_text_row_aside(self, error: NotANumberError) -> None:
        """Remove the line of the cell if it has no number at all, else raise an error."""
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
                f"{self._source}, line {line}: {count} cells of text, expected"
                f" {len(self._columns)} numbers.\n  Remove the line, or start it with #."
            )

    def _not_a_number(self, line: int, place: int, cells: list[str]) -> FormatError:
        name = repr(self._columns[place]) if place < len(self._columns) else f"{place + 1}"
        hint = (
            "Correct the cell, leave it empty if the value is missing, or remove the row or column."
        )
        if "," in cells[place] and is_number(cells[place].replace(",", ".")):
            hint = "It seems to have a decimal comma: save the table with decimal points."
        return FormatError(
            f"{self._source}, line {line}, column {name}: {cells[place][:40]!r} is not a number.\n"
            f"  {hint}"
        )


def _text(cell: bytes) -> str:
    return cell.decode("utf-8", "replace").strip().strip('"').strip()
