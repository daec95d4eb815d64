"""Rows of the study, appended to a CSV; results with a row are not computed again."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

COLUMNS = ("study", "data", "number", "method", "k", "value", "cpu_seconds")

Key = tuple[str, str, int, str]


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return all rows that are there."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            {
                **row,
                "number": int(row["number"]),
                "k": int(row["k"]),
                "value": float(row["value"]),
                "cpu_seconds": float(row["cpu_seconds"]),
            }
            for row in csv.DictReader(file)
        ]


def append_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Add the rows of one ranking, in one write: they are there together or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    if not path.exists():
        writer.writeheader()
    writer.writerows(rows)
    with path.open("a", encoding="utf-8") as file:
        file.write(text.getvalue())


def missing(path: Path, wanted: Iterable[Key]) -> list[Key]:
    """Return what has no row yet."""
    done = {(row["study"], row["data"], row["number"], row["method"]) for row in read_rows(path)}
    return [key for key in wanted if key not in done]
