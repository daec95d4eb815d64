"""Rows of results: one line of JSON per run, so that the benchmark can stop and resume."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from dynamic import dense, sparse
from dynamic.cells import DENSE, Cell
from dynamic.sets import load, load_for_choice

Row = dict[str, Any]


def run_cell(cell: Cell, folder: Path) -> Row:
    """Train one cell on one thread and return its row."""
    task = (load_for_choice if cell.is_choice else load)(cell.data, folder)
    with threadpool_limits(limits=1):
        found = (dense if cell.method == DENSE else sparse).train(cell, task)
    return {**cell.key(), **_rounded(found)}


def _rounded(found: Row) -> Row:
    def short(value: Any) -> Any:
        return float(f"{value:.6g}") if isinstance(value, float) else value

    return {
        key: [short(one) for one in value] if isinstance(value, list) else short(value)
        for key, value in found.items()
    }


def read_rows(path: Path) -> list[tuple[Cell, Row]]:
    """Return all runs so far; of two runs of the same cell, the later."""
    if not path.exists():
        return []
    found = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        cell = Cell.from_key({name: row[name] for name in Cell.__dataclass_fields__})
        found[json.dumps(cell.key(), sort_keys=True)] = (cell, row)
    return list(found.values())


def append_row(path: Path, row: Row) -> None:
    """Add one row, in one write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, (json.dumps(row) + "\n").encode())
    finally:
        os.close(descriptor)


def missing(path: Path, cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells that have no row yet, each once."""
    done = {json.dumps(cell.key(), sort_keys=True) for cell, _ in read_rows(path)}
    todo = {json.dumps(cell.key(), sort_keys=True): cell for cell in cells}
    return [cell for key, cell in todo.items() if key not in done]


def run_missing(
    path: Path, cells: Iterable[Cell], folder: Path, *, n_jobs: int = 1, minutes: float = 1e9
) -> bool:
    """Run what has no row yet; False if the time was up before the end."""
    ends = time.monotonic() + 60.0 * minutes
    todo = missing(path, cells)
    for group in _groups(todo, n_jobs):
        if time.monotonic() > ends:
            return False
        for row in Parallel(n_jobs=n_jobs)(delayed(run_cell)(cell, folder) for cell in group):
            append_row(path, row)
            cell = Cell.from_key({name: row[name] for name in Cell.__dataclass_fields__})
            print(
                f"{cell.data} {cell.method} {cell.density:g}"
                f"{' validation' if cell.is_choice else ''} seed {cell.seed}"
                f" [{cell.recipe.words()}]: {row['accuracy'][-1]:.4f}"
                f" in {sum(row['seconds']):.1f} CPU s",
                flush=True,
            )
    return True


def _groups(cells: Sequence[Cell], size: int) -> Iterator[Sequence[Cell]]:
    for first in range(0, len(cells), size):
        yield cells[first : first + size]
