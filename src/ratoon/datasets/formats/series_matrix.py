"""GEO series matrix files: lines with facts about the samples, then one expression table.

A fact is a line ``!Sample_something`` with one quoted cell per sample.  The most useful are
``!Sample_characteristics_ch1`` with cells such as ``"disease state: ALL"``.  A file has several of
these lines, and the same key may occur in different lines for different samples, so they are
collected by key.  The table is between ``!series_matrix_table_begin`` and ``_end``, one probe per
line.
"""

from __future__ import annotations

import csv
from pathlib import Path

from ratoon.datasets.files import read_lines
from ratoon.datasets.formats.delimited import decode
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.datasets.tables.numbers import NumberRows
from ratoon.errors import FormatError, InvalidInputError, near

_MOST_FACTS = 20_000
_BEGIN, _END = b"!series_matrix_table_begin", b"!series_matrix_table_end"


def read_series_matrix(path: Path, options: ReadOptions) -> Parsed:
    """Read a ``*_series_matrix.txt``, plain or gzipped."""
    lines = enumerate(read_lines(path, options.limits), 1)
    facts: list[tuple[str, list[str]]] = []
    for number, line in lines:
        if line.lower().startswith(_BEGIN):
            break
        if line.startswith(b"!Sample_"):
            name, *cells = _cells(path, number, line)
            facts.append((name.removeprefix("!Sample_"), cells))
            if len(facts) > _MOST_FACTS:
                raise FormatError(
                    f"{path}, line {number}: more than {_MOST_FACTS} lines of sample facts,"
                    " which is refused."
                )
    else:
        raise FormatError(
            f"{path}: no line {_BEGIN.decode()!r}.\n  This is not a series matrix file, or it is"
            " cut off; series matrix files are named GSE..._series_matrix.txt.gz."
        )
    samples: list[str] = []
    rows: NumberRows | None = None
    probes: list[str] = []
    for number, line in lines:
        if line.lower().startswith(_END):
            break
        if not line:
            continue
        if rows is None:
            samples = _cells(path, number, line)[1:]
            rows = NumberRows(str(path), samples, b"\t", options.dtype, options.limits)
            continue
        name_cell, _, row = line.partition(b"\t")
        probes.append(decode(name_cell).strip().strip('"'))
        rows.add(number, row)
    else:
        raise FormatError(
            f"{path}: cut off: no line {_END.decode()!r} after {len(probes)} probes.\n"
            "  Download the file again."
        )
    if rows is None or not samples or not probes:
        raise FormatError(
            f"{path}: the table is empty.\n  For sequencing data GEO keeps the values in"
            " supplementary files; read one of those with a sample sheet."
        )
    values = rows.finish()
    for number, text in rows.text_rows.items():
        raise FormatError(f"{path}, line {number}: {text[0][:40]!r} is not a number.")
    fields = _fields(path, facts, len(samples))
    parsed = Parsed(values.T, feature_names=probes, sample_names=samples)
    if options.sample_sheet is None:
        choose_field(path, fields, options, parsed)
    return parsed


def _cells(path: Path, number: int, line: bytes) -> list[str]:
    try:
        cells = next(csv.reader([decode(line)], delimiter="\t"))
    except csv.Error as error:
        raise FormatError(f"{path}, line {number}: {error}.") from None
    return [cell.strip() for cell in cells]


def _fields(path: Path, facts: list[tuple[str, list[str]]], n_samples: int) -> dict[str, list[str]]:
    """Collect facts by field; ``characteristics`` are split by the key in each cell."""
    fields: dict[str, list[str]] = {}
    for name, cells in facts:
        if len(cells) != n_samples:
            raise FormatError(
                f"{path}: !Sample_{name} has {len(cells)} cells for {n_samples} samples; the file"
                " is damaged."
            )
        if not name.startswith("characteristics"):
            fields.setdefault(name, cells)
            continue
        for sample, cell in enumerate(cells):
            key, colon, value = cell.partition(":")
            if not cell:
                continue
            if not colon:
                key, value = name, cell
            column = fields.setdefault(key.strip(), [""] * n_samples)
            column[sample] = column[sample] or value.strip()
    return fields


def choose_field(
    path: Path, fields: dict[str, list[str]], options: ReadOptions, parsed: Parsed
) -> None:
    """Take the labels from the field ``label=``, or list the fields that could be the label."""
    listing = _listing(fields)
    if options.label is None:
        parsed.notes.append("fields that could be the label: " + "; ".join(listing[:20]))
        return
    wanted = str(options.label).removeprefix("!Sample_").lower()
    for name, cells in fields.items():
        if name.lower() == wanted:
            parsed.labels, parsed.label_source = cells, f"field {name!r}"
            parsed.notes.append(f"labels from field {name!r}")
            return
    lines = "\n    ".join(listing[:20])
    raise InvalidInputError(
        f"{path}: there is no sample field {options.label!r}.{near(options.label, fields)}\n"
        f"  Pass label= with one of\n    {lines}"
    )


def _listing(fields: dict[str, list[str]]) -> list[str]:
    """List the fields with at least two distinct values, likely labels first."""
    likely: list[str] = []
    unlikely: list[str] = []
    for name, cells in fields.items():
        values = sorted(set(cells) - {""})
        if len(values) < 2:
            continue
        shown = ", ".join(values[:3]) + (", ..." if len(values) > 3 else "")
        text = f"{name} ({len(values)} values: {shown[:80]})"
        (likely if len(values) <= len(cells) / 2 else unlikely).append(text)
    return likely + unlikely
