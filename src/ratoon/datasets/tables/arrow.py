"""Numbers of text tables, parsed by pyarrow where it is installed.

`ArrowCells` parses a block of cells whatever their number per line; `ArrowRows` parses a block of
whole lines of few columns, also those of text, for which lines would cost more than numbers.
Both return the values of `float` to the bit, and None for a block that they cannot read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.datasets.tables.labels import MISSING_WORDS

MOST_COLUMNS = 100
"""Tables with more columns are read cell by cell, which is faster there."""


def arrow() -> Any | None:
    """Return pyarrow, or None if it is not installed."""
    try:
        import pyarrow.csv
    except ImportError:
        return None
    return pyarrow


def _converting(csv: Any, **options: Any) -> Any:
    words = sorted({form for word in MISSING_WORDS for form in _forms(word)})
    return csv.ConvertOptions(null_values=words, **options)


def _forms(word: str) -> tuple[str, ...]:
    return word, word.upper(), word.capitalize()


class ArrowCells:
    r"""Parses blocks of lines, without the cells that are text.

    Every cell becomes a line of a table of one column, so that thousands of columns cost nothing.

    Examples
    --------
    >>> ArrowCells(arrow())(b"1.5\t-2\n\t1e3\n", b"\t")
    (array([   1.5,   -2. ,    nan, 1000. ]), array([2, 2]))
    """

    def __init__(self, arrow: Any) -> None:
        csv = arrow.csv
        self._arrow = arrow
        self._reading = csv.ReadOptions(use_threads=False, column_names=["cells"], block_size=2**30)
        self._parsing = csv.ParseOptions(
            delimiter="\x01", quote_char=False, ignore_empty_lines=False
        )
        self._converting = _converting(
            csv, column_types={"cells": arrow.float64()}, strings_can_be_null=True
        )

    def __call__(
        self, block: bytes, delimiter: bytes
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]] | None:
        """Return what `parse_block` returns; None for a block that only that one can read."""
        if b'"' in block or b"\x01" in block or b"\r" in block:
            return None
        cells = self._arrow.py_buffer(block.replace(delimiter, b"\n"))
        try:
            table = self._arrow.csv.read_csv(
                self._arrow.BufferReader(cells), self._reading, self._parsing, self._converting
            )
        except self._arrow.ArrowInvalid:  # text, or a form of number that only `float` knows
            return None
        text = np.frombuffer(block, dtype=np.uint8)
        newlines = np.flatnonzero(text == ord("\n"))
        ends = np.flatnonzero((text == delimiter[0]) | (text == ord("\n")))
        per_line = np.diff(np.searchsorted(ends, newlines), prepend=-1)
        values = table.column(0).to_numpy()
        return (values, per_line) if values.size == ends.size else None


class ArrowRows:
    r"""Parses blocks of whole lines.

    Parameters
    ----------
    arrow : module
    delimiter : str
    n_columns : int
        Cells of a line.
    separate : sequence of int
        Columns of text, in increasing order.
    dtype : str
        Of the numbers.

    Examples
    --------
    >>> values, texts = ArrowRows(arrow(), ",", 3, [1], "float64")(b"1.5,a,-2\nNA,b,1e3")
    >>> values
    array([[   1.5,   -2. ],
           [   nan, 1000. ]])
    >>> texts
    [['a', 'b']]
    """

    def __init__(
        self, arrow: Any, delimiter: str, n_columns: int, separate: Sequence[int], dtype: str
    ) -> None:
        csv, names = arrow.csv, [str(number) for number in range(n_columns)]
        self._arrow, self._dtype, self._separate = arrow, dtype, list(separate)
        self._delimiter, self._n_columns = delimiter.encode(), n_columns
        self._numeric = [number for number in range(n_columns) if number not in set(separate)]
        types = {names[number]: arrow.float64() for number in self._numeric}
        types |= {names[number]: arrow.string() for number in separate}
        self._reading = csv.ReadOptions(use_threads=False, column_names=names, block_size=2**30)
        self._parsing = csv.ParseOptions(delimiter=delimiter, quote_char=False)
        self._converting = _converting(csv, column_types=types, strings_can_be_null=False)

    def __call__(self, block: bytes) -> tuple[NDArray[Any], list[list[str]]] | None:
        """Return the numbers and the text columns; None for a block to be read line by line."""
        if b'"' in block or b"\r" in block or (b"#" in block and b"\n#" in b"\n" + block):
            return None
        n_lines = block.count(b"\n") + 1
        if block.count(self._delimiter) != n_lines * (self._n_columns - 1):
            return None  # pyarrow 16 crashes if a line has a million cells too many
        try:
            table = self._arrow.csv.read_csv(
                self._arrow.BufferReader(block), self._reading, self._parsing, self._converting
            )
        except self._arrow.ArrowInvalid:  # among others text, and too many or too few cells
            return None
        if table.num_rows != n_lines:  # blank lines, which it leaves out
            return None
        values = np.empty((table.num_rows, len(self._numeric)), dtype=self._dtype)
        with np.errstate(over="ignore"):  # overflow gives infinity, which is refused later
            for place, number in enumerate(self._numeric):
                values[:, place] = table.column(number).to_numpy()
        return values, [_texts(table.column(number)) for number in self._separate]


def _texts(column: Any) -> list[str]:
    """Return the cells of a text column without blanks around them."""
    encoded = column.combine_chunks().dictionary_encode()
    words = [word.strip() for word in encoded.dictionary.to_numpy(zero_copy_only=False)]
    found: list[str] = np.array(words, dtype=object)[encoded.indices.to_numpy()].tolist()
    return found
