"""A table as read from a file, and its conversion to samples, features and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.datasets.tables.numbers import is_missing, is_number
from ratoon.datasets.tables.orientation import is_label_name, orientation_of
from ratoon.errors import FormatError, InvalidInputError, near


class Table:
    """Rows of a table: numbers in one array, text columns separately.

    Parameters
    ----------
    source : str
        Path, for messages.
    columns : list of str
        All headings; generated names if the file has none.
    has_heading : bool
        Whether the headings are from the file.
    index : int or None
        Column with the row names.
    separate : list of int
        Columns that are not numbers, including the index, in increasing order.
    dtype : str
        ``"float32"`` or ``"float64"``.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_numeric_columns)
    numeric_columns, numeric_names : list
        Positions and headings of the numeric columns.
    rows : list of int
        Line numbers of the rows with numbers.
    text_rows : dict of str to (int, list of str)
        Rows without any number, by name: line number and cells in the numeric columns.
    notes : list of str
        What was decided while reading the file.
    """

    def __init__(
        self,
        source: str,
        columns: list[str],
        has_heading: bool,
        index: int | None,
        separate: list[int],
        dtype: str,
    ) -> None:
        self.source, self.columns, self.has_heading = source, columns, has_heading
        self.index, self.separate, self.dtype = index, separate, dtype
        self.values: NDArray[Any] = np.empty((0, 0))
        self.rows: list[int] = []
        self.text_rows: dict[str, tuple[int, list[str]]] = {}
        self.notes: list[str] = []
        self._texts: list[list[str]] = [[] for _ in separate]
        is_separate = set(separate)
        self.numeric_columns = [j for j in range(len(columns)) if j not in is_separate]
        self.numeric_names = [columns[j] for j in self.numeric_columns]

    def add_row(self, line: int, texts: list[str]) -> None:
        """Add the line number and the text cells of a row."""
        self.rows.append(line)
        for column, text in zip(self._texts, texts, strict=True):
            column.append(text)

    def add_rows(self, lines: range, texts: list[list[str]]) -> None:
        """Add the line numbers and the text columns of several rows."""
        self.rows.extend(lines)
        for column, more in zip(self._texts, texts, strict=True):
            column.extend(more)

    def set_values(self, values: NDArray[Any], text_rows: dict[int, list[str]]) -> None:
        """Set the numbers, and move the rows without any number to `text_rows`."""
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
        """Cells of the index column, or None without one."""
        return None if self.index is None else self.text_of(self.index)

    def text_of(self, column: int) -> list[str]:
        """Return the cells of a text column."""
        return self._texts[self.separate.index(column)]

    def values_of(self, column: int) -> list[str] | list[float]:
        """Return the cells of a text column, or the numbers of another."""
        if column in self.separate:
            return self.text_of(column)
        found: list[float] = self.values[:, self.numeric_columns.index(column)].tolist()
        return found

    @property
    def text_columns(self) -> list[int]:
        """Text columns, without the index."""
        return [j for j in self.separate if j != self.index]


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
    parsed.notes[:0] = [*table.notes, f"samples are in {where}: {evidence}"]
    if not parsed.values.shape[0] or not parsed.values.shape[1]:
        raise FormatError(
            f"{table.source}: the table has {parsed.values.shape[0]} samples with"
            f" {parsed.values.shape[1]} numeric features; at least one of each is needed."
        )
    return parsed


def _from_rows(table: Table, options: ReadOptions) -> Parsed:
    if table.text_rows:
        line, cells = next(iter(table.text_rows.values()))
        if not table.rows:
            raise FormatError(
                f"{table.source}: no row has a number; line {line} has {cells[0][:40]!r}.\n"
                "  Features must be numbers: check for units, decimal commas or another delimiter."
            )
        raise FormatError(
            f"{table.source}, line {line}: no number in this row ({', '.join(cells[:3])}, ...).\n"
            "  Remove the row; if it contains labels, pass orientation='samples_in_columns'."
        )
    label = _label_column(table, options)
    _require_columns(table, table.columns, options)
    aside = {name: table.columns.index(name) for name in options.columns if name in table.columns}
    label = None if label in aside.values() else label
    unused = [j for j in table.text_columns if j != label and j not in aside.values()]
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
        if j != label and j not in aside.values() and table.columns[j] not in ignored
    ]
    values = table.values if len(kept) == table.values.shape[1] else table.values[:, kept]
    labels: list[str] | list[float] | None = None
    if label is not None:
        notes.append(f"labels from column {table.columns[label]!r}")
        labels = table.values_of(label)
    names = [table.numeric_names[place] for place in kept] if table.has_heading else None
    return Parsed(
        values,
        labels=labels,
        feature_names=names,
        sample_names=table.row_names,
        label_source=f"column {table.columns[label]!r}" if label is not None else "labels",
        notes=notes,
        columns={name: table.values_of(j) for name, j in aside.items()},
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
                f"{table.source}: there is no column {options.label}; label= must be from"
                f" {-len(columns)} to {len(columns) - 1}, or a name."
            )
        return options.label % len(columns)
    if options.label in columns:
        return columns.index(options.label)
    text = [columns[j] for j in table.text_columns]
    shown = text or [columns[j] for j in table.numeric_columns]
    kind = "text columns" if text else "columns"
    hint = near(options.label, [*shown, *columns]).strip()
    raise InvalidInputError(
        f"{table.source}: there is no column {options.label!r}.\n  "
        + (f"{hint} " if hint else "")
        + f"The {kind} are {', '.join(map(repr, shown[:8]))}"
        + (f" and {len(shown) - 8} more." if len(shown) > 8 else ".")
    )


def _require_columns(table: Table, known: Sequence[str], options: ReadOptions) -> None:
    """Raise if a column of groups, times or events is neither here nor in a sample sheet."""
    if options.sample_sheet is not None:
        return
    for name in options.columns:
        if name not in known:
            raise InvalidInputError(
                f"{table.source}: there is no column {name!r}.{near(name, known)}"
            )


def _refuse_text_columns(table: Table, unused: list[int], options: ReadOptions) -> None:
    refused = [j for j in unused if table.columns[j] not in options.ignore]
    if not refused:
        return
    column = refused[0]
    cells = table.text_of(column)
    text_cells = [k for k, cell in enumerate(cells) if not (is_number(cell) or is_missing(cell))]
    where = f"column {table.columns[column]!r} (number {column + 1})"
    if text_cells and 2 * len(text_cells) <= len(cells):
        raise FormatError(
            f"{table.source}, line {table.rows[text_cells[0]]}, {where}:"
            f" {cells[text_cells[0]][:40]!r} is not a number, but {len(cells) - len(text_cells)} of"
            f" the {len(cells)} cells of this column are.\n  Correct the cell, leave it empty if"
            f" the value is missing, or ignore the column with ignore=({table.columns[column]!r},)."
        )
    names = ", ".join(repr(table.columns[j]) for j in refused[:8])
    which = "it" if len(refused) == 1 else f"one of {names}"
    example = next((text for text in cells if text), "")
    raise FormatError(
        f"{table.source}: {where} contains text ({example[:40]!r}), not numbers.\n"
        f"  If {which} is the label, pass label=; if it contains the sample names, pass index=;"
        " if it contains groups of samples, such as patients or batches, pass group=;"
        " otherwise ignore it with ignore=(...).\n"
        "  To use categories as features, read the file with pandas and encode them:"
        " make_pipeline(ratoon.table_encoder(), ...)."
    )


def _from_columns(table: Table, options: ReadOptions) -> Parsed:
    notes = []
    if table.text_columns:
        dropped = ", ".join(repr(table.columns[j]) for j in table.text_columns)
        notes.append(f"text columns about the features were ignored: {dropped}")
    names = table.row_names
    _require_columns(table, [*table.text_rows, *(names or ())], options)
    label = _label_row(table, options)
    for row, (line, cells) in table.text_rows.items():
        if row not in (label, *options.columns, *options.ignore):
            raise FormatError(
                f"{table.source}, line {line}: row {row!r} contains text ({cells[0][:40]!r}), not"
                f" numbers.\n  If it is the label, pass label={row!r}; otherwise pass"
                f" ignore=({row!r},)."
            )
    labels: list[str] | list[float] | None = None
    kept = np.ones(len(table.rows), dtype=bool)
    if names is not None:
        out = {*options.ignore, *options.columns}
        kept = np.array([name not in out for name in names], dtype=bool)
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
        columns={
            name: table.text_rows[name][1]
            if name in table.text_rows
            else table.values[(names or []).index(name)].tolist()
            for name in options.columns
            if name in table.text_rows or name in (names or [])
        },
    )


def _label_row(table: Table, options: ReadOptions) -> str | None:
    if options.sample_sheet is not None:
        return None
    names = [*table.text_rows, *(table.row_names or ())]
    if options.label is not None:
        if options.label in names:
            return str(options.label)
        raise InvalidInputError(
            f"{table.source}: there is no row {options.label!r}; samples are in columns."
            f"{near(options.label, names)}\n"
            "  Pass the name of a row, or pass a separate table with the labels as sample_sheet=."
        )
    names = [name for name in names if name not in options.columns]
    found = [name for name in names if is_label_name(name)]
    return found[0] if found else next((n for n in table.text_rows if n in names), None)
