"""Many decimal numbers at once: a block of delimited text becomes an array of floats.

Python's `float` costs some 300 ns per cell once the cell has been cut out; a series matrix has
16 million of them.  In such a file most cells look alike (``12.34567``), so cells of the same
length, sign and place of the point are taken together: their characters form a table, and the
table times the powers of ten gives the numbers without their point.  With at most 15 digits both
that whole number and the power of ten it is divided by are exact in float64, so the quotient is
the correctly rounded value, the very one `float` gives.  All other cells (exponents, blanks,
quotes, missing, text) are left to `float`, one by one.
"""

from __future__ import annotations

from math import nan

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from ratoon.datasets.tables.cells import is_missing

_MOST_DIGITS = 15
_LONGEST = _MOST_DIGITS + 2  # sign and point
_NO_POINT = 31
_MINUS, _POINT, _SLASH, _ZERO, _NINE, _NEWLINE = b"-./09\n"


class NotANumberError(ValueError):
    """A cell holds text; `place` is its number in the block, `cell` what it says."""

    def __init__(self, place: int, cell: str) -> None:
        super().__init__(f"cell {place} is {cell!r}")
        self.place, self.cell = place, cell


def parse_block(block: bytes, delimiter: bytes) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    r"""Return the numbers of a block of lines, and how many each line has.

    Parameters
    ----------
    block : bytes
        Whole lines, each ended by a newline.
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

    shapes = _shapes_of_cells(text, is_end, starts, ends)
    values = np.empty(ends.size)
    padded = np.concatenate((text, np.zeros(_LONGEST, dtype=np.uint8)))
    for shape in np.flatnonzero(np.bincount(shapes)[1:]) + 1:
        alike = np.flatnonzero(shapes == shape)
        values[alike] = _parse_alike(padded, starts[alike], int(shape))
    for place in np.flatnonzero(shapes == 0):
        values[place] = _parse_one(block[starts[place] : ends[place]], int(place))
    return values, per_line


def _cell_at(positions: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the cell in which each character position lies."""
    return np.searchsorted(ends, positions)


def _shapes_of_cells(
    text: NDArray[np.uint8],
    is_end: NDArray[np.bool_],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.int16]:
    """Return length, place of the point and sign of each cell as one code, 0 if not plain."""
    lengths = ends - starts
    points = np.flatnonzero(text == _POINT)
    negative = text[starts] == _MINUS
    if points.size == ends.size and np.all((points >= starts) & (points < ends)):
        point = points - starts  # one in each cell, the usual case
        plain = (lengths > 0) & (lengths <= _LONGEST)
    else:
        cells = _cell_at(points, ends)
        point = np.full(ends.size, _NO_POINT, dtype=np.int64)
        point[cells] = points - starts[cells]
        plain = (lengths > 0) & (lengths <= _LONGEST)
        plain[cells[1:][cells[1:] == cells[:-1]]] = False  # two points
    minus = np.flatnonzero(text == _MINUS)
    if minus.size != np.count_nonzero(negative):
        cells = _cell_at(minus, ends)
        plain[cells[starts[cells] != minus]] = False  # a sign inside, as in 1e-5
    # The characters - . / 0 to 9 follow each other, so one comparison finds all others.
    other = text - np.uint8(_MINUS) > _NINE - _MINUS
    other |= text == _SLASH
    other &= ~is_end
    plain[_cell_at(np.flatnonzero(other), ends)] = False
    n_digits = lengths - negative - (point != _NO_POINT)
    plain &= (n_digits > 0) & (n_digits <= _MOST_DIGITS)
    return np.where(plain, lengths * 64 + point * 2 + negative, 0).astype(np.int16)


def _parse_alike(
    padded: NDArray[np.uint8], starts: NDArray[np.int64], shape: int
) -> NDArray[np.float64]:
    """Parse cells of one length, with the point, if any, and the sign in the same places."""
    length, point, negative = shape // 64, shape % 64 // 2, shape % 2
    digits = [j for j in range(negative, length) if j != point]
    weights = np.zeros(length)
    weights[digits] = 10.0 ** np.arange(len(digits))[::-1]
    characters = sliding_window_view(padded, length)[starts]
    # Characters count from "0", so the sum is too large by a constant; below 2**53 all is exact.
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
