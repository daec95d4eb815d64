"""Rows of the study: one per method, set and split, appended to a CSV.

An interrupted study can be resumed: results with a row are not computed again.
"""

from __future__ import annotations

import csv
import os
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from quality import networks, rivals
from quality.scores import scores_of
from quality.sets import Split, load, split
from ratoon.evolution import SET, Static, annealed_set

COLUMNS = (
    "method",
    "set",
    "split",
    "accuracy",
    "balanced",
    "log_loss",
    "brier",
    "calibration_error",
    "best_on_test",
    "cpu_seconds",
)

METHODS: dict[str, Callable[[Split, int], Any]] = {
    "ratoon": networks.default,
    "ridge": rivals.ridge,
    "f_ridge": rivals.f_weighted_ridge,
    "l1": rivals.l1,
    "two_phase": rivals.two_phase,
    "linear_svc": rivals.linear_svc,
    "forest": rivals.forest,
    "lightgbm": rivals.lightgbm,
    "xgboost": rivals.xgboost,
    "recipe_g": networks.recipe_g,
    "recipe_g_part": partial(networks.recipe_g, is_whole=False),
    "fixprob": partial(networks.paper, strategy=Static()),
    "set": partial(networks.paper, strategy=SET(0.3)),
    "set_settles": partial(networks.paper, strategy=annealed_set(0.3)),
    "set_guided": networks.guided_set,
}

Key = tuple[str, str, int]


def run_one(method: str, name: str, number: int, folder: Path) -> dict[str, Any]:
    """Fit one method to one split of one set, and score it; seconds are those of the processor."""
    parts = split(*load(name, folder), number)
    started = time.process_time()
    with threadpool_limits(limits=1):  # fan-out is over fits, not inside them
        answer = METHODS[method](parts, number)
    seconds = time.process_time() - started
    found = answer if isinstance(answer, dict) else scores_of(parts.y_test, *answer)
    row: dict[str, Any] = {"method": method, "set": name, "split": number}
    row |= {key: round(value, 5) for key, value in found.items()}
    return row | {"cpu_seconds": round(seconds, 3)}


def run_or_tell(method: str, name: str, number: int, folder: Path) -> dict[str, Any] | str:
    """Run one, or say why it could not be done: one method's failure ends no study."""
    try:
        return run_one(method, name, number, folder)
    except Exception as error:
        reason = (str(error).strip() or repr(error)).splitlines()[0]
        return f"{method} failed on {name}, split {number}: {reason}"


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return all rows that are there; of two for the same thing, the later."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        found = {
            (row["method"], row["set"], int(row["split"])): row for row in csv.DictReader(file)
        }
    return [
        {
            **row,
            "split": int(row["split"]),
            **{key: float(row[key]) if row[key] else float("nan") for key in COLUMNS[3:]},
        }
        for row in found.values()
    ]


def append_row(path: Path, row: dict[str, Any]) -> None:
    """Add one row, in one write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = ",".join(str(row.get(key, "")) for key in COLUMNS) + "\n"
    if not path.exists():
        line = ",".join(COLUMNS) + "\n" + line
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def missing(path: Path, wanted: Iterable[Key]) -> list[Key]:
    """Return what has no row yet."""
    done = {(row["method"], row["set"], row["split"]) for row in read_rows(path)}
    return [key for key in wanted if key not in done]


def run_all(path: Path, wanted: Iterable[Key], folder: Path, n_jobs: int) -> int:
    """Run what has no row yet, and return how many; failures are reported and left out."""
    todo = missing(path, wanted)
    n_done = 0
    work = (delayed(run_or_tell)(method, name, number, folder) for method, name, number in todo)
    for row in Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)(work):
        if isinstance(row, str):
            print(row, file=sys.stderr)
            continue
        append_row(path, row)
        n_done += 1
    return n_done
