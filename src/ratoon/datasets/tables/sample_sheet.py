"""Sample sheets: tables with one row per sample, the sample name in the first column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from ratoon.datasets.files import Limits, read_lines
from ratoon.datasets.formats.delimited import decode, read_rows
from ratoon.datasets.options import Parsed, SampleSheet
from ratoon.datasets.tables.orientation import repeated
from ratoon.errors import FormatError, InvalidInputError, near


def read_sample_sheet(path: Path, limits: Limits) -> SampleSheet:
    """Read a CSV or TSV whose first column names the samples; all cells stay text."""
    rows = read_rows(path, limits)
    heading = [cell.strip() for _, cells in islice(rows, 1) for cell in cells]
    body = []
    for line, cells in rows:
        if len(cells) != len(heading):
            raise FormatError(
                f"{path}, line {line}: {len(cells)} cells, but the heading has {len(heading)}.\n"
                "  Correct the line, or quote cells that contain the delimiter."
            )
        body.append([cell.strip() for cell in cells])
        limits.check_shape(str(path), len(body), len(heading))
    if not body or len(heading) < 2:
        raise FormatError(
            f"{path}: a sample sheet needs a heading, a column with sample names, one or more other"
            " columns, and at least one row."
        )
    names = tuple(cells[0] for cells in body)
    for name, places in repeated(names).items():
        raise FormatError(
            f"{path}: sample {name!r} occurs in rows {[p + 2 for p in places]}; keep one of them."
        )
    columns = {name: tuple(cells[j] for cells in body) for j, name in enumerate(heading) if j}
    return SampleSheet(str(path), names, columns)


def join_sample_sheet(
    parsed: Parsed, sheet: SampleSheet, label: str | int | None, source: str
) -> Parsed:
    """Return ``parsed`` with labels from a column of the sheet, matched by sample name."""
    column = _choose_column(sheet, label)
    notes = [*parsed.notes, f"labels from column {column!r} of {Path(sheet.source).name}"]
    labels, absent = cells_of(parsed, sheet, column, source)
    if absent:
        notes.append(f"{len(absent)} samples are not in the sample sheet ({_some(absent)})")
    where = f"{sheet.source}, column {column!r}"
    return replace(parsed, labels=labels, label_source=where, notes=notes)


def cells_of(
    parsed: Parsed, sheet: SampleSheet, column: str, source: str
) -> tuple[list[str], list[str]]:
    """Return the cell of every sample in a column of the sheet, and the samples without one."""
    if parsed.sample_names is None:
        raise InvalidInputError(
            f"{source}: the samples have no names, so {sheet.source} cannot be matched to them.\n"
            "  Pass index= with the column that contains the sample names."
        )
    known = dict(zip(sheet.names, sheet.columns[column], strict=True))
    absent = [name for name in parsed.sample_names if name not in known]
    if len(absent) == len(parsed.sample_names):
        raise InvalidInputError(
            f"{source}: no sample is in the sample sheet {sheet.source}; the data have"
            f" {_some(parsed.sample_names)}, the sheet has {_some(sheet.names)}.\n"
            "  The first column of the sheet must contain the sample names of the data; pass index="
            " if another column of the data contains them."
        )
    # A sample that is not in the sheet gets an empty label, handled by `unlabelled=`.
    return [known.get(name, "") for name in parsed.sample_names], absent


def _choose_column(sheet: SampleSheet, label: str | int | None) -> str:
    names = list(sheet.columns)
    if label is None and len(names) == 1:
        return names[0]
    if isinstance(label, str) and label in names:
        return label
    problem = "several columns" if label is None else f"no column {label!r}"
    hint = "" if label is None else near(label, names)
    raise InvalidInputError(
        f"{sheet.source}: {problem}; pass label= with one of {', '.join(map(repr, names[:12]))}."
        f"{hint}"
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:3])) + (", ..." if len(names) > 3 else "")


def read_cls(path: Path, limits: Limits) -> tuple[str, ...]:
    r"""Read the labels of a Broad ``.cls`` file: one per sample of the table, in its order.

    The file has three lines: counts, the names of the classes after ``#``, and the labels, which
    are the names or the numbers 0, 1, ...  After a first line ``#numeric`` come lines of numbers.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "a.cls")
    ...     _ = file.write_text("3 2 1\n# ALL AML\n0 1 1\n")
    ...     read_cls(file, Limits())
    ('ALL', 'AML', 'AML')
    """
    lines = [decode(line).split() for line in read_lines(path, limits) if line.strip()]
    if lines and lines[0][0].lower() == "#numeric":
        if len(lines) < 3:
            raise FormatError(f"{path}: no numbers after #numeric; the file is cut off.")
        return tuple(lines[2])
    if len(lines) != 3 or len(lines[0]) != 3 or not lines[1][0].startswith("#"):
        raise FormatError(
            f"{path}: a .cls file has three lines: counts, '# names of classes', and labels."
        )
    names = [name for name in [lines[1][0].lstrip("#"), *lines[1][1:]] if name]
    labels = lines[2]
    if str(len(labels)) != lines[0][0]:
        raise FormatError(
            f"{path}: {len(labels)} labels, but the first line says {lines[0][0]} samples."
        )
    codes = {str(code): name for code, name in enumerate(names)}
    if all(label in codes for label in labels):
        return tuple(codes[label] for label in labels)
    return tuple(labels)
