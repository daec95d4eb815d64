"""Parquet tables: one row per sample or per gene, as in a text table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ratoon.datasets.files import open_regular
from ratoon.datasets.optional import require
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.datasets.tables.orientation import is_label_name, is_name_heading
from ratoon.datasets.tables.table import Table, samples_from_table
from ratoon.errors import FormatError, RatoonError, near


def read_parquet(path: Path, options: ReadOptions) -> Parsed:
    """Read a ``.parquet`` file; labels, names and orientation are handled as for CSV."""
    parquet = require("pyarrow.parquet", f"to read {path.name}")
    arrow = require("pyarrow", f"to read {path.name}")
    try:
        with open_regular(path, options.limits) as file:
            opened = parquet.ParquetFile(file)
            meta = opened.metadata
            limits, where = options.limits, str(path)
            itemsize = np.dtype(options.dtype).itemsize
            limits.check_shape(where, meta.num_rows, meta.num_columns, itemsize)
            groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
            stored = path.stat().st_size
            limits.check_expanded(where, sum(g.total_byte_size for g in groups), stored)
            table = opened.read(use_threads=False, use_pandas_metadata=True)
    except RatoonError:
        raise
    except (arrow.ArrowException, OSError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())[:200]
        raise FormatError(
            f"{path}: damaged, cut off or not a Parquet file ({reason}).\n"
            "  Copy or download it again."
        ) from None
    return samples_from_table(_as_table(table, path, options), options)


def _as_table(arrow_table: Any, path: Path, options: ReadOptions) -> Table:
    columns = list(arrow_table.column_names)
    if not arrow_table.num_rows or not columns:
        raise FormatError(
            f"{path}: the table is empty ({arrow_table.num_rows} rows, {len(columns)} columns)."
        )
    import pyarrow.types as types

    text = []
    for j, field in enumerate(arrow_table.schema):
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
            text.append(j)
        elif not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            if field.name not in options.ignore:
                raise FormatError(
                    f"{path}, column {field.name!r}: values of type {field.type} are not numbers.\n"
                    f"  Convert the column, or ignore it with ignore=({field.name!r},)."
                )
            text.append(j)
    index = _index_column(columns, text, arrow_table, options, path)
    separate = sorted({*text, *([] if index is None else [index])})
    table = Table(str(path), columns, True, index, separate, options.dtype)
    values = np.empty((arrow_table.num_rows, len(table.numeric_columns)), dtype=options.dtype)
    for place, j in enumerate(table.numeric_columns):
        values[:, place] = _numbers(arrow_table.column(j))
    cells = [
        ["" if v is None else str(v) for v in arrow_table.column(j).to_pylist()] for j in separate
    ]
    for row in range(arrow_table.num_rows):
        table.add_row(row + 1, [column[row] for column in cells])
    table.set_values(values, {})
    return table


def _numbers(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.combine_chunks().dictionary_decode()
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    if column.null_count:
        column = column.cast(pa.float64(), safe=False).fill_null(float("nan"))
    return column.to_numpy()


def _index_column(
    columns: list[str], text: list[int], table: Any, options: ReadOptions, path: Path
) -> int | None:
    if options.index is not None:
        if options.index not in columns:
            raise FormatError(
                f"{path}: there is no column {options.index!r} for index=; the first columns are"
                f" {', '.join(map(repr, columns[:8]))}.{near(options.index, columns)}"
            )
        return columns.index(options.index)
    if "__index_level_0__" in columns:  # the name pandas gives an unnamed index
        return columns.index("__index_level_0__")
    for j in text:
        if is_name_heading(columns[j]):
            return j
    if 0 in text and columns[0] != options.label and not is_label_name(columns[0]):
        names = table.column(0).to_pylist()
        return 0 if len(set(names)) > len(names) / 2 else None
    return None
