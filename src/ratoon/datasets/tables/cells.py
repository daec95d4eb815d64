"""Single cells of a text table: number, missing, or text."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from ratoon.datasets.tables.labels import MISSING_WORDS


def is_missing(cell: str) -> bool:
    """Whether a cell is empty or says that its value is absent.

    Examples
    --------
    >>> is_missing(" NA "), is_missing("0")
    (True, False)
    """
    return cell.strip().lower() in MISSING_WORDS


def is_number(cell: str) -> bool:
    """Whether a cell is a number; ``1_000``, which Python would accept, is not.

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


def number_or_nan(cells: Sequence[str]) -> list[float] | int:
    """Return all cells as floats, missing ones as NaN, or the place of the first that is text.

    Examples
    --------
    >>> number_or_nan(["1", "NA"]), number_or_nan(["1", "high"])
    ([1.0, nan], 1)
    """
    numbers = []
    for place, cell in enumerate(cells):
        if is_number(cell):
            numbers.append(float(cell))
        elif is_missing(cell):
            numbers.append(nan)
        else:
            return place
    return numbers
