"""Forms of SET in the paper's model: where, when and how much to grow, all on the same splits.

Splits 100 and up: `GuidedSET` was chosen on a few of them, and the study of the default looks at
none.  Everything but the strategy is as in `quality.networks.paper`, so that the static network is
FixProb.  Rows go to a CSV as they come, all forms of a split before the next one, and what has a
row is not run again.  A training that diverges has a row without an accuracy.
"""

from __future__ import annotations

import csv
import math
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from quality.forms import FORMS, Strengths, known_beforehand, strategy
from quality.networks import paper
from quality.sets import Split, load, split
from ratoon.errors import DivergenceError

COLUMNS = ("form", "set", "split", "accuracy")
SPLITS, FIRST_FRESH = range(100, 120), 109

load_once = lru_cache(maxsize=8)(load)


def run_one(form: str, parts: Split, known: Strengths, seed: int) -> float:
    """Return the test accuracy in percent at the last epoch; NaN where training diverged."""
    try:
        found = paper(parts, seed, strategy=strategy(form, known, len(parts.y)))
    except DivergenceError:
        return math.nan
    return found["accuracy"]


def read_forms(path: Path) -> list[dict[str, Any]]:
    """Return all rows, as `quality.compare` wants them."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            {
                "method": row["form"],
                "set": row["set"],
                "split": int(row["split"]),
                "accuracy": float(row["accuracy"] or "nan"),
            }
            for row in csv.DictReader(file)
        ]


def run_missing(
    path: Path, sets: list[str], splits: list[int], folder: Path, minutes: float
) -> bool:
    """Run what has no row yet until time is up; say whether all is there."""
    stop = time.monotonic() + 60 * minutes
    done = {(row["method"], row["set"], row["split"]) for row in read_forms(path)}
    for number in splits:
        for name in sets:
            todo = [form for form in FORMS if (form, name, number) not in done]
            if not todo:
                continue
            parts = split(*load_once(name, folder), number)
            with threadpool_limits(limits=1):
                known = known_beforehand(parts)
                for form in todo:
                    if time.monotonic() > stop:
                        return False
                    _append(path, form, name, number, run_one(form, parts, known, number))
    return True


def _append(path: Path, form: str, name: str, number: int, accuracy: float) -> None:
    is_new = not path.exists()
    text = "" if math.isnan(accuracy) else f"{accuracy:.2f}"
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        writer.writerow([form, name, number, text])
