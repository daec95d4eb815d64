"""A sample sheet: one row per sample, its name first, what is known about it beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ratoon.datasets.files import Limits
from ratoon.datasets.formats.delimited import read_rows
from ratoon.datasets.options import Parsed, SampleSheet
from ratoon.datasets.tables.orientation import repeated
from ratoon.errors import FormatError, InvalidInputError


def read_sample_sheet(path: Path, limits: Limits) -> SampleSheet:
    """Read a CSV or TSV whose first column names the samples; all cells stay text."""
    rows = read_rows(path, limits)
    heading = [cell.strip() for _, cells in islice(rows, 1) for cell in cells]
    body = []
    for line, cells in rows:
        if len(cells) != len(heading):
            raise FormatError(
                f"{path}, line {line}: {len(cells)} cells under a heading of {len(heading)}."
            )
        body.append([cell.strip() for cell in cells])
        limits.check_shape(str(path), len(body), len(heading))
    if not body or len(heading) < 2:
        raise FormatError(
            f"{path}: a sample sheet has a heading, a column of sample names and one or more"
            " columns about them."
        )
    names = tuple(cells[0] for cells in body)
    for name, places in repeated(names).items():
        raise FormatError(f"{path}: sample {name!r} stands in rows {[p + 2 for p in places]}.")
    columns = {name: tuple(cells[j] for cells in body) for j, name in enumerate(heading) if j}
    return SampleSheet(str(path), names, columns)


def join_sample_sheet(
    parsed: Parsed, sheet: SampleSheet, label: str | int | None, source: str
) -> Parsed:
    """Take the labels of ``parsed`` from a column of the sheet, matched by sample name."""
    column = _choose_column(sheet, label)
    if parsed.sample_names is None:
        raise InvalidInputError(
            f"{source}: the samples have no names, so {sheet.source} cannot be matched to them.\n"
            "  Pass index= to say which column names the samples."
        )
    known = dict(zip(sheet.names, sheet.columns[column], strict=True))
    absent = [name for name in parsed.sample_names if name not in known]
    if len(absent) == len(parsed.sample_names):
        raise InvalidInputError(
            f"{source}: no sample is in the sheet {sheet.source}; the data have"
            f" {_some(parsed.sample_names)}, the sheet {_some(sheet.names)}.\n"
            "  The first column of the sheet must name the samples as the data do; index= says"
            " which column of the data names them."
        )
    # An absent one gets an empty label, which `unlabelled=` then decides about.
    labels = [known.get(name, "") for name in parsed.sample_names]
    notes = [*parsed.notes, f"labels from column {column!r} of {Path(sheet.source).name}"]
    if absent:
        notes.append(f"{len(absent)} samples are not in the sample sheet ({_some(absent)})")
    where = f"{sheet.source}, column {column!r}"
    return replace(parsed, labels=labels, label_source=where, notes=notes)


def _choose_column(sheet: SampleSheet, label: str | int | None) -> str:
    names = list(sheet.columns)
    if label is None and len(names) == 1:
        return names[0]
    if isinstance(label, str) and label in names:
        return label
    asked = "several columns" if label is None else f"no column {label!r}"
    raise InvalidInputError(
        f"{sheet.source}: {asked}; pass label= with one of {', '.join(map(repr, names[:12]))}."
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:3])) + (", ..." if len(names) > 3 else "")
