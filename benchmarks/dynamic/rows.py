"""Rows of results: one line of a CSV file per run, so that the benchmark can stop and resume.

Of some earlier runs only the mean over the seeds was kept.  The seed of such a line is a range,
such as ``0-2``, and it has the standard error of the last accuracy.
"""

from __future__ import annotations

import csv
import io
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from dynamic import dense, sparse
from dynamic.cells import DENSE, Cell
from dynamic.pieces import OutOfTimeError, Pieces
from dynamic.sets import load, load_for_choice

Row = dict[str, Any]

KEY = ("set", "method", "density", "recipe", "seed", "part")
LISTS = ("accuracy", "seconds")
"""Values by epoch; of a choice, only the last accuracy and the sum of the seconds."""
NUMBERS = ("connections", "megabytes")
MOST_POINTS = 25
"""Most points of a stored curve; those of longer trainings are the ends of every k-th epoch."""


def run_cell(cell: Cell, folder: Path, pieces: Pieces = Pieces()) -> Row | None:  # noqa: B008
    """Train one cell on one thread and return its row; None if the time was up before the end."""
    task = (load_for_choice if cell.is_choice else load)(cell.data, folder)
    with threadpool_limits(limits=1):
        try:
            found = (dense if cell.method == DENSE else sparse).train(cell, task, pieces)
        except OutOfTimeError:
            return None
    return stored(found, most=1 if cell.is_choice else MOST_POINTS)


def stored(found: Row, most: int) -> Row:
    """Return what is stored of a training, with at most so many points of its curve.

    >>> found = {"accuracy": [0.1, 0.2, 0.3, 0.4], "seconds": [1.0, 2.0, 2.0, 1.0],
    ...          "connections": [8, 8, 8, 8], "megabytes": 0.5}
    >>> stored(found, most=2)["accuracy"], stored(found, most=2)["seconds"]
    ([0.2, 0.4], [3.0, 3.0])
    """
    n_epochs = len(found["accuracy"])
    step = next(k for k in range(1, n_epochs + 1) if n_epochs % k == 0 and n_epochs // k <= most)
    seconds = [sum(found["seconds"][end : end + step]) for end in range(0, n_epochs, step)]
    return {
        "accuracy": [round(one, 4) for one in found["accuracy"][step - 1 :: step]],
        "seconds": [float(f"{one:.4g}") for one in seconds],
        "connections": round(float(np.mean(found["connections"] or [0]))),
        "megabytes": float(f"{found['megabytes']:.4g}"),
        "error": "",
    }


def read_rows(path: Path) -> list[tuple[Cell, Row]]:
    """Return all runs so far; of two runs of the same cell, the later."""
    if not path.exists():
        return []
    found = {}
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            key = {name: line[name] for name in KEY}
            row: Row = {name: [float(one) for one in line[name].split()] for name in LISTS}
            row |= {name: float(line[name] or "nan") for name in NUMBERS}
            row["error"] = float(line["error"] or "nan")
            first, _, last = line["seed"].partition("-")
            row["seeds"] = int(last or first) - int(first) + 1
            found[tuple(key.values())] = (Cell.from_key(key), row)
    return list(found.values())


def append_row(path: Path, cell: Cell, row: Row) -> None:
    """Add one row, in one write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {**cell.key(), **row} | {name: " ".join(f"{x:g}" for x in row[name]) for name in LISTS}
    text = io.StringIO()
    writer = csv.DictWriter(text, [*KEY, *NUMBERS, *LISTS, "error"], lineterminator="\n")
    if not path.exists():
        writer.writeheader()
    writer.writerow(values)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, text.getvalue().encode())
    finally:
        os.close(descriptor)


def missing(path: Path, cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells that have no row yet, each once."""
    done = {
        tuple(replace(cell, seed=cell.seed + number).key().values())
        for cell, row in read_rows(path)
        for number in range(row["seeds"])
    }
    todo = {tuple(cell.key().values()): cell for cell in cells}
    return [cell for key, cell in todo.items() if key not in done]


def run_missing(
    path: Path, cells: Iterable[Cell], folder: Path, *, n_jobs: int = 1, minutes: float = 1e9
) -> bool:
    """Run what has no row yet; False if the time was up before the end."""
    ends = time.monotonic() + 60.0 * minutes
    todo = missing(path, cells)
    pieces = Pieces(path.with_suffix(".pieces"), ends)
    for group in _groups(todo, n_jobs):
        if time.monotonic() > ends:
            return False
        rows = Parallel(n_jobs=n_jobs)(delayed(run_cell)(cell, folder, pieces) for cell in group)
        for cell, row in zip(group, rows, strict=True):
            if row is None:
                continue
            append_row(path, cell, row)
            pieces.forget(cell)
            print(
                f"{cell.data} {cell.method} {cell.density:g}"
                f"{' validation' if cell.is_choice else ''} seed {cell.seed}"
                f" [{cell.recipe.words()}]: {row['accuracy'][-1]:.4f}"
                f" in {sum(row['seconds']):.1f} CPU s",
                flush=True,
            )
        if None in rows:
            return False
    return True


def _groups(cells: Sequence[Cell], size: int) -> Iterator[Sequence[Cell]]:
    for first in range(0, len(cells), size):
        yield cells[first : first + size]
