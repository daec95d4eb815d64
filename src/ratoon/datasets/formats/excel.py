"""Excel and OpenDocument workbooks (``.xlsx``, ``.xlsm``, ``.xlsb``, ``.ods``), by python-calamine.

The cells of a sheet become the lines of a text table, so labels, names and orientation are handled
as for CSV.
"""

from __future__ import annotations

import csv
import io
import json
import os
import zipfile
from collections.abc import Iterable, Iterator
from datetime import date, time, timedelta
from pathlib import Path
from typing import Any

from ratoon.datasets.files import Limits
from ratoon.datasets.formats.delimited import Line, table_from_lines
from ratoon.datasets.isolation import Isolation, run_child
from ratoon.datasets.optional import require
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.datasets.tables.table import samples_from_table
from ratoon.errors import FormatError, InvalidInputError, RatoonError, near

_MOST_CHARACTERS = 32_767
"""Excel stores no longer text in a cell."""


def is_workbook(path: Path) -> bool:
    """Whether a zip archive is a workbook."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError):
        return False
    return bool(names & {"xl/workbook.xml", "xl/workbook.bin", "content.xml"})


def read_excel(path: Path, options: ReadOptions) -> Parsed:
    """Read one sheet of a workbook: the first, or the one named by ``matrix=``."""
    calamine = require("python_calamine", f"to read {path.name}", extra="excel")
    _check_size(path, options.limits)
    _try_in_child(path, options)
    try:
        workbook = calamine.CalamineWorkbook.from_path(str(path))
        names = list(workbook.sheet_names)
        sheet = workbook.get_sheet_by_name(_choose_sheet(path, names, options))
        height, width = sheet.total_height, sheet.total_width
        options.limits.check_shape(str(path), height, width, 8)
        rows = sheet.to_python(skip_empty_area=True)
    except RatoonError:
        raise
    except (calamine.CalamineError, OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())[:200]
        raise FormatError(
            f"{path}: damaged, encrypted or not a workbook ({reason}).\n"
            "  Open it in the program that wrote it and save it again, or save the sheet as CSV."
        ) from None
    parsed = samples_from_table(table_from_lines(path, _lines(rows), options), options)
    if len(names) > 1:
        others = ", ".join(repr(name) for name in names[:8] if name != sheet.name)
        parsed.notes.insert(0, f"sheet {sheet.name!r} was read; the others are {others}")
    return parsed


_TRIAL = """
import contextlib, json, sys
import python_calamine
path, sheet, n_bytes = json.load(sys.stdin)
with contextlib.suppress(ImportError, ValueError):
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))
with contextlib.suppress(Exception):
    workbook = python_calamine.CalamineWorkbook.from_path(path)
    workbook.get_sheet_by_name(sheet or workbook.sheet_names[0])
"""


def _try_in_child(path: Path, options: ReadOptions) -> None:
    """Raise `FormatError` if the sheet cannot be opened with a bounded amount of memory.

    A sheet takes memory for all cells up to the last one, wherever a file says that it is, and
    without that memory calamine ends the process.
    """
    isolation = Isolation()
    request = [os.path.abspath(path), options.matrix, isolation.memory_bytes]
    try:
        run_child(path, _TRIAL, json.dumps(request), isolation)
    except FormatError as error:
        raise FormatError(
            f"{error}\n  Delete the cells far outside the table, or save the sheet as CSV."
        ) from None


def _choose_sheet(path: Path, names: list[str], options: ReadOptions) -> str:
    if not names:
        raise InvalidInputError(f"{path}: the workbook has no sheets.")
    if options.matrix is None:
        return names[0]
    if options.matrix not in names:
        raise InvalidInputError(
            f"{path}: there is no sheet {options.matrix!r}; pass matrix= with one of"
            f" {', '.join(map(repr, names[:12]))}.{near(options.matrix, names)}"
        )
    return options.matrix


def _check_size(path: Path, limits: Limits) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
    except (OSError, zipfile.BadZipFile, NotImplementedError) as error:
        raise FormatError(f"{path}: damaged or not a workbook ({error}).") from None
    limits.check_expanded(str(path), unpacked, path.stat().st_size)


def _lines(rows: Iterable[list[Any]]) -> Iterator[Line]:
    """Yield the rows that are not empty as lines of a tab-separated table."""
    for number, row in enumerate(rows, 1):
        cells = [_text(cell) for cell in row]
        if any(cells):
            text = io.StringIO()
            csv.writer(text, delimiter="\t", lineterminator="").writerow(cells)
            yield number, text.getvalue().encode()


def _text(cell: Any) -> str:
    if isinstance(cell, float):
        return repr(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, date | time | timedelta):
        return str(cell)
    # A cell of a text table is on one line.
    return " ".join(str(cell)[:_MOST_CHARACTERS].split())
