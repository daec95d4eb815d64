"""Find the orientation of a table: samples in rows, or samples in columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ratoon.datasets.options import ReadOptions
from ratoon.datasets.tables.labels import LABEL_NAMES

_GENE_WORDS = re.compile(
    r"(hugo_)?(id_ref|gene|symbol|probe_?set|probe|ensembl|feature|identifier|transcript"
    r"|entrez|reporter)(s|_?id|_?name|_?symbol|_set_id)?"
)
_SAMPLE_WORDS = re.compile(
    r"(sample|patient|subject|cell|barcode|case|donor|individual|geo_accession)(s|_?id|_?name)?"
)
_NEUTRAL_WORDS = re.compile(r"ids?|names?|index|key|accession|row_?names?|unnamed:_0")
_GENE_NAME = re.compile(
    r"^(AFFX-.*|.*_at|ENS[A-Z]*[GTP]\d{6,}.*|ILMN_\d+|A_\d\d_P\d+|[NX][MR]_\d+.*|cg\d{8})$"
)
_SAMPLE_NAME = re.compile(r"^(GSM\d+|TCGA-.*|SRR\d+|[A-Za-z]*[ _]?sample[ _-]?\d+)$", re.IGNORECASE)


def is_label_name(name: str) -> bool:
    """Whether a column or row with this name is used as the label by default."""
    return name.strip().lower() in LABEL_NAMES


def is_name_heading(heading: str) -> bool:
    """Whether a column with this heading contains the row names.

    Examples
    --------
    >>> is_name_heading("Gene Symbol"), is_name_heading("age")
    (True, False)
    """
    name = _normal(heading)
    words = (_GENE_WORDS, _SAMPLE_WORDS, _NEUTRAL_WORDS)
    return any(pattern.fullmatch(name) for pattern in words)


def _normal(heading: str) -> str:
    return re.sub(r"[\s.\-]+", "_", heading.strip().lower())


def orientation_of(
    corner: str, columns: Sequence[str], rows: Sequence[str], options: ReadOptions
) -> tuple[bool, str]:
    """Return whether samples are in columns, and the reason.

    Parameters
    ----------
    corner : str
        Heading of the column with the row names, often empty.
    columns, rows : sequence of str
        The other headings, and the row names.
    options : ReadOptions
        For the explicit orientation, the label and the sample sheet.

    Examples
    --------
    >>> orientation_of("ID_REF", ["GSM1", "GSM2"], ["1007_s_at"], ReadOptions())
    (True, "the row names are headed 'ID_REF'")
    """
    if options.orientation != "auto":
        return options.orientation == "samples_in_columns", "as given by orientation="
    column_set, row_set = set(columns), set(rows)
    if options.sample_sheet is not None:
        known = set(options.sample_sheet.names)
        in_columns, in_rows = len(known & column_set), len(known & row_set)
        if in_columns != in_rows:
            where = "headings" if in_columns > in_rows else "row names"
            count = max(in_columns, in_rows)
            return in_columns > in_rows, f"{count} {where} are in the sample sheet"
    if isinstance(options.label, str) and options.sample_sheet is None:
        if options.label in column_set or options.label == corner:
            return False, f"{options.label!r} is a column"
        if options.label in row_set:
            return True, f"{options.label!r} is a row"
    for name in (*options.columns, *options.ignore):
        if (name in column_set or name == corner) and name not in row_set:
            return False, f"{name!r} is a column"
        if name in row_set and name not in column_set:
            return True, f"{name!r} is a row"
    for samples_in_columns, evidence in _evidence(corner, columns, rows):
        return samples_in_columns, evidence
    return False, "the default; pass orientation= if this is wrong"


def _evidence(corner: str, columns: Sequence[str], rows: Sequence[str]) -> list[tuple[bool, str]]:
    found: list[tuple[bool, str]] = []
    heading = _normal(corner)
    # In German, "Probe" is a sample.
    if _GENE_WORDS.fullmatch(heading) and not _mostly(_SAMPLE_NAME, rows):
        found.append((True, f"the row names are headed {corner!r}"))
    if heading == "name" and columns and _normal(columns[0]) == "description":
        found.append((True, "the first columns are 'Name' and 'Description'"))
    label_columns = [name for name in columns if is_label_name(name)]
    label_rows = [name for name in rows if is_label_name(name)]
    # A transposed table may keep its corner heading, so a row of labels is stronger evidence.
    if label_rows and not label_columns:
        found.append((True, f"{label_rows[0]!r} is a row"))
    if _SAMPLE_WORDS.fullmatch(heading):
        found.append((False, f"the row names are headed {corner!r}"))
    if label_columns:
        found.append((False, f"{label_columns[0]!r} is a column"))
    for pattern, kind, in_columns in (
        (_GENE_NAME, "genes", False),
        (_SAMPLE_NAME, "samples", True),
    ):
        if _mostly(pattern, columns):
            found.append((in_columns, f"headings such as {columns[-1]!r} name {kind}"))
        if _mostly(pattern, rows):
            found.append((not in_columns, f"rows such as {rows[-1]!r} name {kind}"))
    return found


def _mostly(pattern: re.Pattern[str], names: Sequence[str]) -> bool:
    some = names[-200:]
    return bool(some) and sum(bool(pattern.match(name)) for name in some) > 0.8 * len(some)


def repeated(names: Sequence[str]) -> dict[str, list[int]]:
    """Return names that occur more than once, with their positions.

    Examples
    --------
    >>> repeated(["a", "b", "a"])
    {'a': [0, 2]}
    """
    if len(set(names)) == len(names):
        return {}
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    return {name: where for name, where in places.items() if len(where) > 1}
