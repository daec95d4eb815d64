"""ARFF files of Weka and OpenML, parsed by SciPy."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import arff

from ratoon.datasets.files import read_lines
from ratoon.datasets.formats.delimited import decode
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.datasets.tables.orientation import is_name_heading
from ratoon.datasets.tables.table import Table, samples_from_table
from ratoon.errors import FormatError, near


def read_arff(path: Path, options: ReadOptions) -> Parsed:
    """Read numeric and nominal attributes; the last nominal one is the label by default."""
    lines = [decode(line) for line in read_lines(path, options.limits)]
    _refuse_sparse(path, lines)
    # SciPy gives every value of an attribute the room of its longest one.
    start = next((k for k, line in enumerate(lines) if line.strip().lower() == "@data"), len(lines))
    width = sum(map(_width, lines[:start]))
    options.limits.check_shape(str(path), len(lines) - start, width, 1)
    try:
        values, meta = arff.loadarff(io.StringIO("\n".join(lines)))
    except Exception as error:  # SciPy raises whatever a damaged file leads to
        raise FormatError(
            f"{path}: not an ARFF file that can be read ({' '.join(str(error).split())[:200]}).\n"
            "  Attributes must be numeric or nominal; remove text and date attributes, or save the"
            " data as CSV."
        ) from None
    names = list(meta.names())
    options.limits.check_shape(str(path), values.size, len(names), np.dtype(options.dtype).itemsize)
    table = _as_table(path, values, names, [meta[name][0] for name in names], options)
    return samples_from_table(table, options)


def _as_table(
    path: Path, values: Any, names: list[str], kinds: list[str], options: ReadOptions
) -> Table:
    if not values.size:
        raise FormatError(f"{path}: no data after @DATA; the file is cut off or empty.")
    text = [j for j, kind in enumerate(kinds) if kind not in ("numeric", "integer", "real")]
    index = next((j for j in text if is_name_heading(names[j])), None)
    if options.index is not None:
        if options.index not in names:
            raise FormatError(
                f"{path}: there is no attribute {options.index!r} for index=."
                f"{near(options.index, names)}"
            )
        index = names.index(options.index)
    separate = sorted({*text, *([] if index is None else [index])})
    table = Table(str(path), names, True, index, separate, options.dtype)
    numbers = np.empty((values.size, len(table.numeric_columns)), dtype=options.dtype)
    for place, j in enumerate(table.numeric_columns):
        numbers[:, place] = values[names[j]]
    cells = [[_text(value) for value in values[names[j]].tolist()] for j in separate]
    for row in range(values.size):
        table.add_row(row + 1, [column[row] for column in cells])
    table.set_values(numbers, {})
    return table


def _width(line: str) -> int:
    """Return the bytes of a value of the attribute that a line declares; 0 for other lines."""
    if line.lstrip()[:10].lower() != "@attribute":
        return 0
    return max(8, *(len(value) for value in line.partition("{")[2].split(",")))


def _text(value: Any) -> str:
    text = value.decode() if isinstance(value, bytes) else str(value)
    return "" if text == "?" else text.strip("'\"")


def _refuse_sparse(path: Path, lines: list[str]) -> None:
    is_data = False
    for line in lines:
        text = line.strip()
        if is_data and text and not text.startswith("%"):
            if text.startswith("{"):
                raise FormatError(
                    f"{path}: sparse ARFF is not supported.\n  Save the data as libsvm or CSV; both"
                    " can be sparse here."
                )
            return
        is_data = is_data or text.lower() == "@data"
