"""A table as read from a file, and its conversion to samples, features and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.datasets.tables.numbers import is_missing, is_number
from ratoon.datasets.tables.orientation import is_label_name, orientation_of
from ratoon.errors import FormatError, InvalidInputError


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


def samples_from_table(table: Table, options: ReadOptions) -> Parsed:
    """Interpret a table as samples by features."""
    corner = "" if table.index is None else table.columns[table.index]
    headings = [name for j, name in enumerate(table.columns) if j != table.index]
    rows = [*table.text_rows, *(table.row_names or ())]
    in_columns, evidence = orientation_of(
        corner, headings if table.has_heading else (), rows, options
    )
    parsed = _from_columns(table, options) if in_columns else _from_rows(table, options)
    where = "columns" if in_columns else "rows"
    parsed.notes.insert(0, f"samples lie in the {where}: {evidence}")
    if not parsed.values.shape[0] or not parsed.values.shape[1]:
        raise FormatError(
            f"{table.source}: {parsed.values.shape[0]} samples with {parsed.values.shape[1]}"
            " numeric features; nothing to learn from."
        )
    return parsed


def _from_rows(table: Table, options: ReadOptions) -> Parsed:
    if table.text_rows:
        line, cells = next(iter(table.text_rows.values()))
        if not table.rows:
            raise FormatError(
                f"{table.source}: no row has a number; in line {line} there is {cells[0][:40]!r}.\n"
                "  Features must be numbers: look for units, decimal commas or another delimiter."
            )
        raise FormatError(
            f"{table.source}, line {line}: no number in this row ({', '.join(cells[:3])}, ...).\n"
            "  Remove it; if it is a row of labels, pass orientation='samples_in_columns'."
        )
    label = _label_column(table, options)
    unused = [j for j in table.text_columns if j != label]
    notes = []
    if label is None and options.label is None and options.sample_sheet is None:
        candidates = [j for j in unused if table.columns[j] not in options.ignore]
        if len(candidates) == 1:
            label = candidates[0]
            unused.remove(label)
    _refuse_text_columns(table, unused, options)

    ignored = {*options.ignore} - ({table.columns[label]} if label is not None else set())
    kept = [
        place
        for place, j in enumerate(table.numeric_columns)
        if j != label and table.columns[j] not in ignored
    ]
    values = table.values if len(kept) == table.values.shape[1] else table.values[:, kept]
    labels: list[str] | list[float] | None = None
    if label is not None:
        notes.append(f"labels from column {table.columns[label]!r}")
        if label in table.apart:
            labels = table.text_of(label)
        else:
            labels = table.values[:, table.numeric_columns.index(label)].tolist()
    names = [table.numeric_names[place] for place in kept] if table.has_heading else None
    return Parsed(
        values,
        labels=labels,
        feature_names=names,
        sample_names=table.row_names,
        label_source=f"column {table.columns[label]!r}" if label is not None else "labels",
        notes=notes,
    )


def _label_column(table: Table, options: ReadOptions) -> int | None:
    columns = table.columns
    if options.sample_sheet is not None:
        return None
    if options.label is None:
        return next((j for j, name in enumerate(columns) if is_label_name(name)), None)
    if isinstance(options.label, int):
        if not -len(columns) <= options.label < len(columns):
            raise InvalidInputError(
                f"{table.source}: no column {options.label}; there are {len(columns)}."
            )
        return options.label % len(columns)
    if options.label in columns:
        return columns.index(options.label)
    text = [columns[j] for j in table.text_columns]
    shown = text or [columns[j] for j in table.numeric_columns]
    kind = "text columns" if text else "columns"
    alike = [name for name in columns if name.lower() == options.label.lower()]
    raise InvalidInputError(
        f"{table.source}: there is no column {options.label!r}.\n  "
        + (f"Did you mean {alike[0]!r}? " if alike else "")
        + f"The {kind} are {', '.join(map(repr, shown[:8]))}"
        + (f" and {len(shown) - 8} more." if len(shown) > 8 else ".")
    )


def _refuse_text_columns(table: Table, unused: list[int], options: ReadOptions) -> None:
    refused = [j for j in unused if table.columns[j] not in options.ignore]
    if not refused:
        return
    column = refused[0]
    cells = table.text_of(column)
    strange = [k for k, cell in enumerate(cells) if not (is_number(cell) or is_missing(cell))]
    where = f"column {table.columns[column]!r} (number {column + 1})"
    if strange and 2 * len(strange) <= len(cells):
        raise FormatError(
            f"{table.source}, line {table.rows[strange[0]]}, {where}: {cells[strange[0]][:40]!r} is"
            f" not a number, and {len(cells) - len(strange)} of the {len(cells)} cells of this"
            f" column are.\n  Mend the cell, empty it if the value is missing, or leave the column"
            f" out with ignore=({table.columns[column]!r},)."
        )
    names = ", ".join(repr(table.columns[j]) for j in refused[:8])
    which = "it" if len(refused) == 1 else f"one of {names}"
    example = next((text for text in cells if text), "")
    raise FormatError(
        f"{table.source}: {where} holds text ({example[:40]!r}), not numbers.\n"
        f"  If {which} is the label, pass label=; if it names the samples, pass index=; what"
        " is neither can be left out with ignore=(...)."
    )


def _from_columns(table: Table, options: ReadOptions) -> Parsed:
    notes = []
    if table.text_columns:
        dropped = ", ".join(repr(table.columns[j]) for j in table.text_columns)
        notes.append(f"text about the features left out: {dropped}")
    names = table.row_names
    label = _label_row(table, options)
    for row, (line, cells) in table.text_rows.items():
        if row != label and row not in options.ignore:
            raise FormatError(
                f"{table.source}, line {line}: row {row!r} holds text ({cells[0][:40]!r}), not"
                f" numbers.\n  If it is the label, pass label={row!r}; otherwise ignore=({row!r},)."
            )
    labels: list[str] | list[float] | None = None
    kept = np.ones(len(table.rows), dtype=bool)
    if names is not None:
        kept = np.array([name not in options.ignore for name in names], dtype=bool)
    if label is not None:
        notes.append(f"labels from row {label!r}")
        if label in table.text_rows:
            labels = table.text_rows[label][1]
        else:
            place = (names or []).index(label)
            labels, kept[place] = table.values[place].tolist(), False
    places = np.flatnonzero(kept)
    values = table.values if places.size == kept.size else table.values[places]
    return Parsed(
        values.T,
        labels=labels,
        feature_names=None if names is None else [names[place] for place in places],
        sample_names=table.numeric_names if table.has_heading else None,
        label_source=f"row {label!r}",
        notes=notes,
    )


def _label_row(table: Table, options: ReadOptions) -> str | None:
    if options.sample_sheet is not None:
        return None
    names = [*table.text_rows, *(table.row_names or ())]
    if options.label is not None:
        if options.label in names:
            return str(options.label)
        raise InvalidInputError(
            f"{table.source}: there is no row {options.label!r}; samples lie in the columns.\n"
            "  Name a row, or give the labels in a table of their own with sample_sheet=."
        )
    found = [name for name in names if is_label_name(name)]
    return found[0] if found else (next(iter(table.text_rows), None))
