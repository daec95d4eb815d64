"""GEO SOFT files: a data set (``GDS...soft``) or a family (``GSE..._family.soft``).

A data set is one table of probes by samples; its subsets are facts about samples.  A family has one
table per sample, with the columns ``ID_REF`` and ``VALUE``, and facts such as
``!Sample_characteristics_ch1 = disease state: ALL``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ratoon.datasets.files import read_lines
from ratoon.datasets.formats.delimited import decode
from ratoon.datasets.formats.series_matrix import choose_field
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.datasets.tables.numbers import NumberRows
from ratoon.errors import FormatError

Lines = Iterator[tuple[int, bytes]]


@dataclass
class _Contents:
    """What was read: the probes, one column or array of values, and facts by sample."""

    samples: list[str] = field(default_factory=list)
    facts: dict[str, dict[str, str]] = field(default_factory=dict)
    probes: list[str] = field(default_factory=list)
    columns: list[np.ndarray] = field(default_factory=list)
    table: np.ndarray | None = None

    def add_fact(self, sample: str, key: str, value: str) -> None:
        if key.startswith("characteristics") and ":" in value:
            key, _, value = value.partition(":")
        self.facts.setdefault(key.strip(), {}).setdefault(sample, value.strip())


def read_soft(path: Path, options: ReadOptions) -> Parsed:
    """Read a ``.soft`` file, plain or gzipped."""
    found = _Contents()
    lines: Lines = enumerate(read_lines(path, options.limits), 1)
    entity, name = "", ""
    subset: dict[str, str] = {}
    for _, line in lines:
        if line.startswith(b"^"):
            entity, _, name = (part.strip() for part in decode(line[1:]).partition("="))
            entity = entity.upper()
            if entity == "SAMPLE":
                found.samples.append(name)
        elif line.startswith(b"!"):
            key, _, value = (part.strip() for part in decode(line[1:]).partition("="))
            if key == "dataset_table_begin":
                _read_data_set(path, lines, found, options)
            elif key == "sample_table_begin":
                _read_sample(path, lines, found, options)
            elif key == "platform_table_begin":
                _skip(path, lines, b"!platform_table_end")
            elif entity == "SAMPLE" and key.startswith("Sample_"):
                found.add_fact(name, key.removeprefix("Sample_"), value)
            elif entity == "SUBSET":
                subset[key] = value
                if key == "subset_type":
                    for sample in subset.get("subset_sample_id", "").split(","):
                        kind = subset[key]
                        found.add_fact(sample.strip(), kind, subset.get("subset_description", ""))
    return _parsed(path, found, options)


def _parsed(path: Path, found: _Contents, options: ReadOptions) -> Parsed:
    if found.table is not None:
        values = found.table.T
    elif found.columns:
        values = np.stack(found.columns)
    else:
        raise FormatError(
            f"{path}: no table of values.\n  For sequencing data GEO keeps the values in"
            " supplementary files; read one of those with a sample sheet."
        )
    if len(found.samples) != len(values):
        raise FormatError(
            f"{path}: {len(values)} tables for {len(found.samples)} samples; some samples have no"
            " values, or the file is cut off."
        )
    fields = {
        key: [of_sample.get(sample, "") for sample in found.samples]
        for key, of_sample in found.facts.items()
    }
    parsed = Parsed(values, feature_names=found.probes, sample_names=found.samples)
    if options.sample_sheet is None:
        choose_field(path, fields, options, parsed)
    return parsed


def _read_data_set(path: Path, lines: Lines, found: _Contents, options: ReadOptions) -> None:
    """Read the table of a data set: ID_REF, IDENTIFIER, and one column per sample."""
    number, heading = next(lines, (0, b""))
    columns = decode(heading).split("\t")
    if columns[:2] != ["ID_REF", "IDENTIFIER"] or len(columns) < 3:
        raise FormatError(f"{path}, line {number}: expected ID_REF, IDENTIFIER and the samples.")
    found.samples = columns[2:]
    rows = NumberRows(str(path), found.samples, b"\t", options.dtype, options.limits)
    for number, line in _table(path, lines, b"!dataset_table_end"):
        probe, _, rest = line.partition(b"\t")
        found.probes.append(decode(probe))
        rows.add(number, rest.partition(b"\t")[2].replace(b"null", b""))
    found.table = _finished(path, rows)


def _read_sample(path: Path, lines: Lines, found: _Contents, options: ReadOptions) -> None:
    """Read the table of one sample; every sample must have the same probes in the same order."""
    number, heading = next(lines, (0, b""))
    columns = decode(heading).split("\t")
    if columns[:1] != ["ID_REF"] or "VALUE" not in columns:
        raise FormatError(f"{path}, line {number}: expected the columns ID_REF and VALUE.")
    place = columns.index("VALUE")
    rows = NumberRows(str(path), ["VALUE"], b"\t", options.dtype, options.limits)
    probes = []
    for number, line in _table(path, lines, b"!sample_table_end"):
        cells = line.split(b"\t")
        if len(cells) <= place:
            raise FormatError(f"{path}, line {number}: {len(cells)} cells, expected {place + 1}.")
        probes.append(decode(cells[0]))
        rows.add(number, cells[place].replace(b"null", b""))
    if found.columns and probes != found.probes:
        raise FormatError(
            f"{path}: sample {found.samples[-1]!r} has other probes than the samples before it.\n"
            "  The series has several platforms; download the series matrix of one of them."
        )
    found.probes = probes
    found.columns.append(_finished(path, rows)[:, 0])
    options.limits.check_shape(
        str(path), len(found.columns), len(probes), np.dtype(options.dtype).itemsize
    )


def _table(path: Path, lines: Lines, end: bytes) -> Lines:
    for number, line in lines:
        if line.lower().startswith(end):
            return
        if line:
            yield number, line
    raise FormatError(
        f"{path}: cut off: no line {end.decode()!r} after a table.\n  Download the file again."
    )


def _skip(path: Path, lines: Lines, end: bytes) -> None:
    for _ in _table(path, lines, end):
        pass


def _finished(path: Path, rows: NumberRows) -> np.ndarray:
    values = rows.finish()
    for number, text in rows.text_rows.items():
        raise FormatError(f"{path}, line {number}: {text[0][:40]!r} is not a number.")
    return values
