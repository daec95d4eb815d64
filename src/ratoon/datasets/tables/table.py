"""A table as it stands in a file: numbers in one block, text cells beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Table:
    """Rows of a table with the columns that are not numbers set apart.

    Parameters
    ----------
    source : str
        Path, for messages.
    columns : list of str
        All headings, or made-up ones.
    has_heading : bool
        Whether the headings are the file's own.
    index : int or None
        Column that names the rows.
    apart : list of int
        Columns that are not numbers, the index among them, increasing.
    dtype : str
        ``"float32"`` or ``"float64"``.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_numeric_columns)
    numeric_columns, numeric_names : list
        Places and headings of the columns of numbers.
    rows : list of int
        Line numbers of the rows of numbers.
    text_rows : dict of str to (int, list of str)
        Rows without any number, by name: their line and their cells in the numeric columns.
    """

    def __init__(
        self,
        source: str,
        columns: list[str],
        has_heading: bool,
        index: int | None,
        apart: list[int],
        dtype: str,
    ) -> None:
        self.source, self.columns, self.has_heading = source, columns, has_heading
        self.index, self.apart, self.dtype = index, apart, dtype
        self.values: NDArray[Any] = np.empty((0, 0))
        self.rows: list[int] = []
        self.text_rows: dict[str, tuple[int, list[str]]] = {}
        self._texts: list[list[str]] = [[] for _ in apart]
        separate = set(apart)
        self.numeric_columns = [j for j in range(len(columns)) if j not in separate]
        self.numeric_names = [columns[j] for j in self.numeric_columns]

    def add_row(self, line: int, texts: list[str]) -> None:
        """Note a row of numbers and its text cells."""
        self.rows.append(line)
        for column, text in zip(self._texts, texts, strict=True):
            column.append(text)

    def set_values(self, values: NDArray[Any], text_rows: dict[int, list[str]]) -> None:
        """Take the numbers, and move the rows that turned out to have none to `text_rows`."""
        self.values = values
        if not text_rows:
            return
        for line, cells in text_rows.items():
            row = self.rows.index(line)
            name = f"line {line}" if self.row_names is None else self.row_names[row]
            self.text_rows[name] = (line, cells)
        kept = [row for row, line in enumerate(self.rows) if line not in text_rows]
        self.rows = [self.rows[row] for row in kept]
        self._texts = [[column[row] for row in kept] for column in self._texts]

    @property
    def row_names(self) -> list[str] | None:
        """Cells of the index column."""
        return None if self.index is None else self.text_of(self.index)

    def text_of(self, column: int) -> list[str]:
        """Cells of a column set apart."""
        return self._texts[self.apart.index(column)]

    @property
    def text_columns(self) -> list[int]:
        """Columns set apart, without the index."""
        return [j for j in self.apart if j != self.index]
