"""CSV, TSV and their cousins, either way round, read row by row.

A table is read once: names and text cells are set aside, numbers go into one growing array.  Which
way round it lies is decided at the end, when every name has been seen, and said in the notes.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import numpy as np

from ratoon.datasets.cells import is_missing, is_number, number_or_nan
from ratoon.datasets.files import read_lines
from ratoon.datasets.limits import Limits
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.datasets.orientation import is_label_name, is_name_heading
from ratoon.datasets.table import Table
from ratoon.datasets.table_samples import samples_from_table
from ratoon.errors import FormatError

_PROBED_ROWS = 50
Row = tuple[int, list[str]]


def read_delimited(path: Path, options: ReadOptions) -> Parsed:
    """Read a text table, plain or gzipped, into samples, labels and names."""
    return samples_from_table(read_table(path, options), options)


def read_table(path: Path, options: ReadOptions) -> Table:
    """Read the cells of a text table: numbers as numbers, the rest as text."""
    delimiter = _delimiter(path, options.limits)
    rows = _rows(path, delimiter, options.limits)
    probe = list(islice(rows, _PROBED_ROWS + 1))
    if not probe:
        raise FormatError(f"{path}: no rows; the file has blank lines and comments only.")
    heading = _heading(probe)
    body = probe[1:] if heading is not None else probe
    if not body:
        raise FormatError(f"{path}: a heading and no rows of data.")
    n_cells = len(body[0][1])
    if heading is not None and len(heading) == n_cells - 1:
        heading = ["", *heading]  # R writes no heading over the row names
    if heading is not None and len(heading) != n_cells:
        raise FormatError(
            f"{path}, line {body[0][0]}: {n_cells} cells under a heading of {len(heading)}.\n"
            f"  Is {delimiter!r} the delimiter? Names that contain it must be in quotes."
        )
    if n_cells < 2:
        raise FormatError(
            f"{path}, line {body[0][0]}: one cell per line.\n  A table needs commas, tabs,"
            " semicolons, bars or blanks between its cells; save it as CSV or TSV."
        )
    columns = heading or [f"column {j + 1}" for j in range(n_cells)]
    text_columns = _text_columns(body, n_cells)
    index = _index_column(path, columns, body, text_columns, options, heading is not None)
    apart = sorted({*text_columns, *([] if index is None else [index])})
    table = Table(str(path), columns, heading is not None, index, apart, options.dtype)
    _fill(table, chain(body, rows), options.limits)
    return table


def _fill(table: Table, rows: Iterator[Row], limits: Limits) -> None:
    n_cells = len(table.columns)
    numbers: array[float] = array("d" if table.dtype == "float64" else "f")
    for line, cells in rows:
        if len(cells) != n_cells:
            raise FormatError(
                f"{table.source}, line {line}: {len(cells)} cells where {n_cells} are expected.\n"
                "  The file may be cut off here, or a name contains the delimiter and needs quotes."
            )
        texts = [cells.pop(j).strip() for j in reversed(table.apart)][::-1]
        start = len(numbers)
        try:
            numbers.extend(map(float, cells))
        except ValueError:
            del numbers[start:]
            parsed = number_or_nan(cells)
            if isinstance(parsed, int):
                if not any(map(is_number, cells)):
                    table.add_text_row(line, texts, cells)
                    continue
                raise _not_a_number(table, line, parsed, cells) from None
            numbers.extend(parsed)
        table.add_row(line, texts)
        if len(table.rows) % 1024 == 0:
            limits.check_shape(table.source, len(table.rows), n_cells, numbers.itemsize)
    limits.check_shape(table.source, len(table.rows), n_cells, numbers.itemsize)
    n_numeric = n_cells - len(table.apart)
    table.values = np.frombuffer(numbers, dtype=table.dtype) if numbers else np.empty(0)
    table.values = table.values.reshape(len(table.rows), n_numeric)


def _not_a_number(table: Table, line: int, place: int, cells: list[str]) -> FormatError:
    column = table.numeric_columns[place]
    hint = "Mend the cell, empty it if the value is missing, or leave the column out with ignore=."
    if "," in cells[place] and is_number(cells[place].replace(",", ".")):
        hint = "It looks like a decimal comma: save the table with decimal points."
    return FormatError(
        f"{table.source}, line {line}, column {table.columns[column]!r}"
        f" (number {column + 1}): {cells[place][:40]!r} is not a number.\n  {hint}"
    )


def read_rows(path: Path, limits: Limits) -> Iterator[Row]:
    """Yield the line number and the text cells of each row, heading included."""
    return _rows(path, _delimiter(path, limits), limits)


def _rows(path: Path, delimiter: str, limits: Limits) -> Iterator[Row]:
    """Yield line number and cells; blank lines and comments are passed over."""
    count = 0

    def lines() -> Iterator[str]:
        nonlocal count
        for line in read_lines(path, limits):
            count += 1
            text = decode(line)
            if count == 1:
                text = text.removeprefix("\ufeff")
            if text.strip() and not text.startswith("#"):
                yield " ".join(text.split()) if delimiter == " " else text

    try:
        for cells in csv.reader(lines(), delimiter=delimiter, strict=True):
            yield count, cells
    except csv.Error as error:
        raise FormatError(
            f"{path}, line {count}: {error}.\n  Often a quote that is opened and never closed."
        ) from None


def decode(line: bytes) -> str:
    """Text of a line; what is not UTF-8 is taken for Latin-1, as older files are."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")


def _delimiter(path: Path, limits: Limits) -> str:
    """Find the character that cuts the first lines into the same number of pieces."""
    lines = []
    for line in read_lines(path, limits):
        text = decode(line)
        if text.strip() and not text.startswith("#"):
            lines.append(text.removeprefix("\ufeff"))
        if len(lines) == 10:
            break
    best, best_score = ",", 0.0
    for delimiter in "\t,;| ":
        counts = [len(line.split(None if delimiter == " " else delimiter)) for line in lines]
        if not counts or max(counts) < 2:
            continue
        agreement = counts[1:].count(counts[-1]) / max(1, len(counts) - 1)
        score = agreement * counts[-1] * (0.1 if delimiter == " " else 1.0)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _heading(probe: list[Row]) -> list[str] | None:
    """Return the first row, if it names columns rather than being a row of data."""
    first = [cell.strip() for cell in probe[0][1]]
    if len(probe) == 1 or len(first) == len(probe[1][1]) - 1:
        return None if all(map(is_number, first)) else first
    text = [j for j, cell in enumerate(first) if cell and not is_number(cell)]
    if not text:
        return first if first[0] == "" else None
    if len(text) >= len(first) - 1:
        return first
    below = [cells for _, cells in probe[1:] if len(cells) == len(first)]
    if any(is_number(cells[j]) for cells in below[:5] for j in text):
        return first
    # Numbers over numbers, text over text: data, unless a name gives it away.
    return first if is_name_heading(first[0]) else None


def _text_columns(body: list[Row], n_cells: int) -> list[int]:
    found = set()
    for _, cells in body:
        text = [j for j, cell in enumerate(cells) if not is_number(cell) and not is_missing(cell)]
        # A row with no number at all is a row of labels and says nothing about its columns.
        if len(cells) == n_cells and len(text) < max(2, n_cells - 1):
            found.update(text)
    if not found and body and not is_number(body[0][1][0]) and not is_missing(body[0][1][0]):
        found.add(0)
    return sorted(found)


def _index_column(
    path: Path,
    columns: list[str],
    body: list[Row],
    text_columns: list[int],
    options: ReadOptions,
    has_heading: bool,
) -> int | None:
    if options.index is not None:
        if options.index not in columns:
            raise FormatError(
                f"{path}: no column {options.index!r} for index=; the first columns are"
                f" {', '.join(map(repr, columns[:8]))}."
            )
        return columns.index(options.index)
    if has_heading and columns[0] == "":
        return 0
    if 0 not in text_columns or columns[0] == options.label:
        return None
    names = [cells[0] for _, cells in body]
    if is_name_heading(columns[0]):
        return 0
    return 0 if not is_label_name(columns[0]) and len(set(names)) > len(names) / 2 else None
