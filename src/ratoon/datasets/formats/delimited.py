"""CSV, TSV and similar text tables, in either orientation, read line by line.

Where cells are not separated by commas, numbers may have decimal commas.

A table is read once: cells that are not numbers are removed from each line and stored separately,
the others are parsed by `NumberRows` in blocks.  Where pyarrow is installed, it parses the lines of
tables of few columns, except in blocks with quotes, comments or anything unusual.  The orientation
is decided at the end, when all names are known, and added to the notes.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

import numpy as np

from ratoon.datasets.files import Limits, read_blocks
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.datasets.tables.arrow import MOST_COLUMNS, ArrowRows, arrow
from ratoon.datasets.tables.numbers import NumberRows, is_missing, is_number
from ratoon.datasets.tables.orientation import is_label_name, is_name_heading
from ratoon.datasets.tables.table import Table, samples_from_table
from ratoon.errors import FormatError, InvalidInputError, near

_PROBED_ROWS = 50
_PROBED_CELLS = 200_000
_LONG_LINE = 2**20
"""The cells of a line of more bytes are counted before any of them is made."""
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*")
_DECIMAL_POINT = re.compile(r"\s*[-+]?\d*\.\d+([eE][-+]?\d+)?\s*")
_IS_BLANK = np.array([code < 128 and chr(code).isspace() for code in range(256)])
Line = tuple[int, bytes]


def read_delimited(path: Path, options: ReadOptions) -> Parsed:
    """Read a text table, plain or gzipped, into samples, labels and names."""
    return samples_from_table(read_table(path, options), options)


def read_table(path: Path, options: ReadOptions) -> Table:
    """Read the cells of a text table: numbers as floats, all others as text."""
    return table_from_lines(path, DataLines(path, options.limits), options)


def table_from_lines(path: Path, lines: Iterator[Line], options: ReadOptions) -> Table:
    """Read a table from numbered lines."""
    probe = list(islice(lines, _PROBED_ROWS + 1))
    if not probe:
        raise FormatError(f"{path}: no rows; the file has only blank lines and comments.")
    splitter = Splitter.for_lines(path, probe, options.limits, options.delimiter, options.decimal)
    cells = [splitter.cells(line) for line in probe[:2]]
    # Wide rows are as many as are needed: each cell is a Python string here.
    cells += map(splitter.cells, probe[2 : 1 + max(5, _PROBED_CELLS // len(cells[-1]))])
    heading = _heading(cells)
    first = 0 if heading is None else 1
    if len(probe) == first:
        raise FormatError(
            f"{path}: a heading but no rows of data, so there are no samples.\n"
            "  The file may be cut off; save or download it again."
        )
    n_cells = len(cells[first])
    if heading is not None and len(heading) == n_cells - 1:
        heading = ["", *heading]  # R writes no heading above the row names
    _check_width(path, probe[first][0], n_cells, heading, splitter.delimiter)
    columns = heading or [f"column {j + 1}" for j in range(n_cells)]
    n_rows = max(5, _PROBED_CELLS // n_cells)
    text = _text_columns(cells[first : first + n_rows], n_cells)
    if [name.strip().lower() for name in columns[:2]] == ["name", "description"]:
        text = sorted({*text, 1})  # of a GCT table, where many descriptions are "na"
    names = [splitter.first_cell(line) for line in probe[first:]]
    index = _index_column(path, columns, names, text, options, heading is not None)
    separate = sorted({*text, *([] if index is None else [index])})
    table = Table(str(path), columns, heading is not None, index, separate, options.dtype)
    if splitter.decimal_comma and options.decimal == "auto":
        table.notes.append("numbers have decimal commas")
    _fill(table, probe[first:], lines, splitter, options.limits)
    return table


def _fill(
    table: Table, probed: list[Line], lines: Iterator[Line], splitter: Splitter, limits: Limits
) -> None:
    delimiter = splitter.delimiter.encode()
    numbers = NumberRows(
        table.source,
        table.numeric_names,
        delimiter,
        table.dtype,
        limits,
        n_others=len(table.separate),
    )
    quick = _quick_rows(table, splitter) if isinstance(lines, DataLines) else None

    def add(these: Iterable[Line]) -> None:
        for line in these:
            texts, cells = splitter.split(line, table.separate, len(table.columns))
            table.add_row(line[0], texts)
            numbers.add(line[0], cells)

    if quick is None or not isinstance(lines, DataLines):
        add(chain(probed, lines))
    else:
        add(chain(probed, lines.rest_of_block()))
        for first, block in lines.blocks():
            if (rows := quick(block)) is None:
                add(lines.of_block(first, block))
                continue
            values, columns = rows
            numbers.add_rows(values)
            table.add_rows(range(first, first + values.shape[0]), columns)
    table.set_values(numbers.finish(), numbers.text_rows)


def _quick_rows(table: Table, splitter: Splitter) -> ArrowRows | None:
    """Return a parser of whole blocks, where that is possible and faster."""
    found, n_columns = arrow(), len(table.columns)
    if found is None or n_columns > MOST_COLUMNS or not table.numeric_columns:
        return None
    if splitter.delimiter not in ",;\t|" or splitter.decimal_comma:
        return None
    return ArrowRows(found, splitter.delimiter, n_columns, table.separate, table.dtype)


@dataclass(frozen=True)
class Splitter:
    """Splits lines into cells; quotes are handled in lines that have any."""

    source: str
    delimiter: str
    limits: Limits
    decimal_comma: bool = False

    @classmethod
    def for_lines(
        cls,
        path: Path,
        lines: list[Line],
        limits: Limits,
        delimiter: str | None = None,
        decimal: str = "auto",
    ) -> Splitter:
        """Choose the delimiter and the decimal mark that suit the first lines."""
        probed = lines[:10]
        if delimiter is None:
            candidates = [mark for mark in "\t,;| " if decimal != "," or mark != ","]
            delimiter = _likely_delimiter(probed, candidates)
        splitter = cls(str(path), delimiter, limits)
        if delimiter == "," or decimal == ".":
            return splitter
        has_commas = decimal == "," or _has_decimal_commas(map(splitter.cells, probed))
        return replace(splitter, decimal_comma=has_commas)

    def count(self, raw: bytes, most: int) -> int:
        """Return the number of cells of a line without making any of them.

        It is an upper bound where that is at most ``most``, and counting stops soon above it.
        """
        count = _count_cells(raw, self.delimiter)
        if count <= most or b'"' not in raw:
            return count
        mark = self.delimiter.encode()
        count, place = 1, 0
        while count <= most and (quote := raw.find(b'"', place)) >= 0:
            count += raw.count(mark, place, quote)
            place = quote + 1
            if raw[quote - 1 : quote] in (b"", mark):  # a quote inside a cell has no meaning
                while (end := raw.find(b'"', place)) >= 0 and raw[end + 1 : end + 2] == b'"':
                    place = end + 2
                place = len(raw) if end < 0 else end + 1
        return count + raw.count(mark, place)

    def first_cell(self, line: Line) -> str:
        """Return the first cell of a line as text."""
        raw = line[1]
        if b'"' in raw or self.delimiter == " ":
            return self.cells(line)[0]
        return decode(raw.partition(self.delimiter.encode())[0])

    def cells(self, line: Line) -> list[str]:
        """Return all cells of a line as text; raise if they are more than the limit."""
        number, raw = line
        if len(raw) >= min(_LONG_LINE, self.limits.columns):
            where = f"{self.source}, line {number}"
            self.limits.check_shape(where, 0, self.count(raw, self.limits.columns))
        text = decode(raw)
        if self.delimiter == " ":
            text = " ".join(text.split())
        if '"' not in text:
            return self._with_points(text.split(self.delimiter))
        try:
            return self._with_points(
                next(csv.reader([text], delimiter=self.delimiter, strict=True))
            )
        except csv.Error as error:
            raise FormatError(
                f"{self.source}, line {number}: {error}.\n"
                "  A quote is opened but not closed on the same line; remove or close it."
            ) from None

    def _with_points(self, cells: list[str]) -> list[str]:
        if not self.decimal_comma:
            return cells
        is_number = _DECIMAL_COMMA.fullmatch
        return [cell.replace(",", ".") if is_number(cell) else cell for cell in cells]

    def split(self, line: Line, separate: list[int], n_cells: int) -> tuple[list[str], bytes]:
        """Return the text cells in the columns ``separate``, and the other cells unparsed."""
        number, raw = line
        delimiter = self.delimiter.encode()
        if len(raw) > _LONG_LINE and (count := self.count(raw, n_cells)) > n_cells:
            self._check_count(number, count, n_cells)
        is_quick = b'"' not in raw and delimiter != b" " and not self.decimal_comma
        ends = (0, n_cells - 1)
        if is_quick and n_cells > 2 and all(column in ends for column in separate):
            # The first and the last cell; how many others there are is checked with the numbers.
            texts, rest, marks = [], raw, []
            if separate and separate[0] == 0:
                name, mark, rest = rest.partition(delimiter)
                texts.append(decode(name).strip())
                marks.append(mark)
            if separate and separate[-1] != 0:
                rest, mark, name = rest.rpartition(delimiter)
                texts.append(decode(name).strip())
                marks.append(mark)
            if all(marks):
                return texts, rest
        cells = self.cells(line)
        self._check_count(number, len(cells), n_cells)
        texts = [cells.pop(j).strip() for j in reversed(separate)][::-1]
        return texts, self.delimiter.join(cells).encode()

    def _check_count(self, number: int, found: int, expected: int) -> None:
        if found != expected:
            raise FormatError(
                f"{self.source}, line {number}: {found} cells, expected {expected}.\n"
                "  The file may be cut off here, or a name contains the delimiter and must be"
                " quoted."
            )


def _likely_delimiter(lines: list[Line], candidates: list[str]) -> str:
    """Return the delimiter that splits the lines into the same number of cells."""
    best, best_score = ",", 0.0
    for delimiter in candidates:
        counts = [_count_cells(raw, delimiter) for _, raw in lines]
        if max(counts) < 2:
            continue
        agreement = counts[1:].count(counts[-1]) / max(1, len(counts) - 1)
        score = max(agreement, 0.01) * counts[-1] * (0.1 if delimiter == " " else 1.0)
        # Commas inside numbers are no delimiters if another mark separates such numbers evenly.
        if delimiter in "\t;|" and agreement == 1.0:
            cells = (decode(raw).replace('"', "").split(delimiter) for _, raw in lines)
            score *= 1e6 if _has_decimal_commas(cells) else 1.0
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _has_decimal_commas(rows: Iterable[list[str]]) -> bool:
    """Whether there are numbers with a decimal comma, and none with a decimal point."""
    cells = list(chain.from_iterable(rows))
    has_commas = any(map(_DECIMAL_COMMA.fullmatch, cells))
    return has_commas and not any(map(_DECIMAL_POINT.fullmatch, cells))


def _count_cells(raw: bytes, delimiter: str) -> int:
    if delimiter != " ":
        return raw.count(delimiter.encode()) + 1
    if len(raw) <= _LONG_LINE:
        return len(decode(raw).split())
    # Blanks outside ASCII do not count in such a line: splitting it would make a string per cell.
    blank = _IS_BLANK[np.frombuffer(raw, dtype=np.uint8)]
    return int(np.count_nonzero(blank[:-1] & ~blank[1:])) + int(not blank[0])


def read_rows(path: Path, limits: Limits) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the text cells of each row, including the heading."""
    lines = DataLines(path, limits)
    probe = list(islice(lines, 10))
    if probe:
        splitter = Splitter.for_lines(path, probe, limits)
        for line in chain(probe, lines):
            yield line[0], splitter.cells(line)


class DataLines(Iterator[Line]):
    """Numbered lines of a file, one by one or in blocks; blank lines and comments are skipped."""

    def __init__(self, path: Path, limits: Limits) -> None:
        self._source = read_blocks(path, limits)
        self._n_lines = 0
        self._lines: Iterator[Line] = iter(())
        self._skips_next = False

    def __next__(self) -> Line:
        while (line := next(self._lines, None)) is None:
            self._lines = self.of_block(*next(self.blocks()))
        return line

    def rest_of_block(self) -> Iterator[Line]:
        """Return the remaining lines of the block of the last line."""
        return self._lines

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """Yield the blocks after that one: the number of the first line, and all lines."""
        for block in self._source:
            first = self._n_lines + 1
            self._n_lines += block.count(b"\n") + 1
            yield first, block

    def of_block(self, first: int, block: bytes) -> Iterator[Line]:
        """Yield the lines of a block."""
        for number, line in enumerate(block.split(b"\n"), first):
            if number == 1:
                self._skips_next = line.startswith((b"#1.2", b"#1.3"))
            elif self._skips_next and line:
                self._skips_next = False  # the size of a GCT table, which is not needed
                continue
            if line and not line.startswith(b"#") and not line.isspace():
                yield number, line


def decode(line: bytes) -> str:
    """Return the text of a line; if it is not UTF-8, it is decoded as Latin-1, as in old files."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")


def _heading(rows: list[list[str]]) -> list[str] | None:
    """Return the first row if it is a heading, None if it is data."""
    first = [cell.strip() for cell in rows[0]]
    if len(rows) == 1 or len(first) == len(rows[1]) - 1:
        return None if all(map(is_number, first)) else first
    text = [j for j, cell in enumerate(first) if cell and not is_number(cell)]
    if not text:
        return first if first[0] == "" else None
    if len(text) >= len(first) - 1:
        return first
    below = [cells for cells in rows[1:6] if len(cells) == len(first)]
    if any(is_number(cells[j]) for cells in below for j in text):
        return first
    # Numbers above numbers, text above text: data, unless the first cell is a known heading.
    return first if is_name_heading(first[0]) else None


def _check_width(
    path: Path, line: int, n_cells: int, heading: list[str] | None, delimiter: str
) -> None:
    if n_cells < 2:
        raise FormatError(
            f"{path}, line {line}: one cell per line.\n  The cells of a table must be separated by"
            " commas, tabs, semicolons, bars or blanks; for another character pass delimiter='^'."
        )
    if heading is not None and len(heading) != n_cells:
        raise FormatError(
            f"{path}, line {line}: {n_cells} cells, but the heading has {len(heading)}.\n"
            f"  Is {delimiter!r} the delimiter? Names that contain it must be quoted."
        )


def _text_columns(rows: list[list[str]], n_cells: int) -> list[int]:
    found = set()
    for cells in rows:
        # A row without any number is a row of labels; it does not show which columns are text.
        if len(cells) != n_cells or not any(map(is_number, cells[1:])):
            continue
        for j, cell in enumerate(cells):
            if not is_number(cell) and not is_missing(cell):
                found.add(j)
    if not found and rows and not is_number(rows[0][0]) and not is_missing(rows[0][0]):
        found.add(0)
    return sorted(found)


def _index_column(
    path: Path,
    columns: list[str],
    names: list[str],
    text_columns: list[int],
    options: ReadOptions,
    has_heading: bool,
) -> int | None:
    if options.index is not None:
        if options.index not in columns:
            raise InvalidInputError(
                f"{path}: there is no column {options.index!r} for index=; the first columns are"
                f" {', '.join(map(repr, columns[:8]))}.{near(options.index, columns)}"
            )
        return columns.index(options.index)
    if has_heading and columns[0] == "":
        return 0
    if 0 not in text_columns or columns[0] == options.label:
        return None
    if is_name_heading(columns[0]):
        return 0
    return 0 if not is_label_name(columns[0]) and len(set(names)) > len(names) / 2 else None
