"""What every part of the default recipe is worth: one change at a time, on the same splits.

Variants that differ only in how members are weighed share one fit (`quality.weighings`), and so do
those with other members beside the default's (`quality.others`); those that change what members
are fitted to or how take one of their own (`quality.changes`).  Networks trained by descent are
compared among each other (`quality.after`, `quality.descent`).  Rows go to a CSV as they come, and
what has a row is not run again.  Nothing was chosen by these figures: to take the best line of such
a table as the default would be choosing on test rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from quality.after import GUIDED, guided_snapshots
from quality.apart import Weighing, answer, take_apart, weigh
from quality.changes import CHANGES
from quality.descent import DESCENT, descent_answers
from quality.others import FURTHER, further_answers
from quality.rivals import Answer
from quality.rows import append_row, read_rows
from quality.scores import judge
from quality.sets import Split, load, split
from quality.weighings import SHARES

load_once = lru_cache(maxsize=8)(load)
Answers = Callable[[Split, int, Collection[str]], dict[str, Answer]]


@dataclass(frozen=True)
class Fit:
    """A fit, and the variants that come of it; ``base`` is what they are compared with.

    ``answers`` gets the names that are wanted, and may return others besides.  ``sets`` are those
    it is for, None for all.
    """

    answers: Answers
    labels: dict[str, str]
    base: str = "default"
    sets: tuple[str, ...] | None = None


def default_answers(parts: Split, seed: int, wanted: Collection[str]) -> dict[str, Answer]:
    """Fit once, weigh in all ways that are wanted."""
    apart = take_apart(parts, seed, with_folds="by folds" in wanted)
    return {name: way(apart, seed) for name, (_, way) in SHARES.items() if name in wanted}


def changed_answers(name: str) -> Answers:
    """Fit with a change, and weigh as the default does."""

    def answers(parts: Split, seed: int, wanted: Collection[str]) -> dict[str, Answer]:
        del wanted
        change = CHANGES[name]
        with change.made():
            return {name: answer(*weigh(take_apart(change.of(parts), seed))[1:])}

    return answers


def two_folds_answers(parts: Split, seed: int, wanted: Collection[str]) -> dict[str, Answer]:
    """Let the models of two folds speak, each of half the rows."""
    del wanted
    with CHANGES["folds 2"].made():
        apart = take_apart(parts, seed, with_folds=True)
        return {"by 2 folds": answer(*weigh(apart, Weighing(from_folds=True))[1:])}


def fits() -> dict[str, Fit]:
    """Return all fits in the order in which they are run."""
    found = {"default": Fit(default_answers, {name: text for name, (text, _) in SHARES.items()})}
    found["by 2 folds"] = Fit(two_folds_answers, {"by 2 folds": "average of two folds' models"})
    for name, change in CHANGES.items():
        found[name] = Fit(changed_answers(name), {name: change.label})
    found["further"] = Fit(further_answers, FURTHER)
    found["guided"] = Fit(guided_snapshots, GUIDED, base="guided")
    found["descent"] = Fit(descent_answers, DESCENT, base="descent")
    return found


def run_fit(
    fit: Fit, name: str, number: int, folder: Path, wanted: Collection[str]
) -> Iterable[dict[str, Any]]:
    """Return a row for every variant wanted; seconds are those of the fit they share."""
    parts = split(*load_once(name, folder), number)
    started = time.process_time()
    with threadpool_limits(limits=1):
        answers = fit.answers(parts, number, wanted)
    seconds = round(time.process_time() - started, 3)
    for variant in wanted:
        found = judge(parts.y_test, *answers[variant])
        scores = {key: round(value, 5) for key, value in found.items()}
        yield {"method": variant, "set": name, "split": number, **scores, "cpu_seconds": seconds}


def run_missing(
    path: Path,
    sets: list[str],
    splits: list[int],
    folder: Path,
    minutes: float,
    only: Collection[str] | None = None,
    studied: dict[str, Fit] | None = None,
) -> bool:
    """Run what has no row yet until time is up, all or ``only`` some; say whether all is there."""
    stop = time.monotonic() + 60 * minutes
    done = {(row["method"], row["set"], row["split"]) for row in read_rows(path)}
    for fit in (fits() if studied is None else studied).values():
        its = [name for name in sets if fit.sets is None or name in fit.sets]
        asked = [variant for variant in fit.labels if only is None or variant in only]
        for number in splits:
            for name in its:
                wanted = [variant for variant in asked if (variant, name, number) not in done]
                if not wanted:
                    continue
                if time.monotonic() > stop:
                    return False
                for row in run_fit(fit, name, number, folder, wanted):
                    append_row(path, row)
    return True
