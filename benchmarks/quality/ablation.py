"""What every part of the default recipe is worth: one change at a time, on the same splits.

Variants that differ only in how members are weighed share one fit (`quality.apart`); those that
change what members are fitted to or how take one of their own (`quality.changes`).  Rows go to a
CSV as they come, and what has a row is not run again.  Nothing was chosen by these figures: to
take the best line of such a table as the default would be choosing on test rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from quality.after import guided_snapshots, with_residual
from quality.apart import Apart, Weighing, answer, take_apart, weigh
from quality.changes import CHANGES
from quality.rivals import Answer
from quality.rows import append_row, read_rows
from quality.scores import judge
from quality.sets import Split, load, split

load_once = lru_cache(maxsize=8)(load)
Way = Callable[[Apart, int], Answer]


@dataclass(frozen=True)
class Fit:
    """A fit, and the variants that come of it; ``base`` is what they are compared with."""

    answers: Callable[[Split, int], dict[str, Answer]]
    labels: dict[str, str]
    base: str = "default"


def weighed(**how: Any) -> Way:
    """Return a way to weigh members."""

    def way(apart: Apart, seed: int) -> Answer:
        del seed
        return answer(*weigh(apart, Weighing(**how))[1:])

    return way


def only_q(q: int) -> Way:
    """Leave members of one exponent, both bodies and both scales, not mixed."""
    return weighed(is_member=lambda kind: kind.q == q and not kind.mixed)


SHARES: dict[str, tuple[str, Way]] = {
    "default": ("**the default**", weighed()),
    "linear": ("only linear members", weighed(is_member=lambda kind: kind.body == "linear")),
    "hidden": ("only hidden members", weighed(is_member=lambda kind: kind.body == "hidden")),
    "unmixed": ("no mixed priors", weighed(is_member=lambda kind: not kind.mixed)),
    "mixed": ("only mixed priors", weighed(is_member=lambda kind: kind.mixed)),
    "q 0": ("exponent 0: all features alike", only_q(0)),
    "q 1": ("exponent 1", only_q(1)),
    "q 2": ("exponent 2", only_q(2)),
    "q 3": ("exponent 3", only_q(3)),
    "r 0": ("no natural scale, r = 0", weighed(is_member=lambda kind: kind.r == 0)),
    "r half": ("natural scale only, r = ½", weighed(is_member=lambda kind: kind.r > 0)),
    "sharper": ("shares twice as sharp", weighed(sharpness=0.5)),
    "softer": ("shares half as sharp", weighed(sharpness=0.125)),
    "best": ("the best member alone", weighed(shares="best")),
    "equal": ("equal shares of all members", weighed(shares="equal")),
    "unshifted": ("boundary of least squares", weighed(boundary=None)),
    "shift 1": ("boundary, frequencies 1.0", weighed(boundary=1.0)),
    "shift 0.5": ("boundary, frequencies 0.5", weighed(boundary=0.5)),
    "by folds": ("average of the folds' models", weighed(from_folds=True)),
    "residual": ("a trained network on what is left over", with_residual),
}
"""Ways to make one of the default's members, with what they are called."""

CHANGED = {
    "folds 2": "2 folds instead of 10",
    "folds 5": "5 folds",
    "selected": "the 200 strongest features selected before",
    "clip none": "z-scores not clipped",
    "clip 2": "z-scores clipped at 2 instead of 3",
    "clip 5": "z-scores clipped at 5",
    "clip 10": "z-scores clipped at 10",
    "neurons 1000": "1,000 neurons per hidden member instead of 4,000",
    "neurons 10000": "10,000 neurons",
    "inputs 5": "5 inputs per neuron instead of 10",
    "inputs 20": "20 inputs",
    "rows": "every sample standardised first",
    "log": "logarithms of values",
    "asinh": "asinh of z-scores",
    "ranks": "normal scores of ranks",
    "information": "strength by mutual information (thirds)",
    "before": "strength by the weights of a network before",
}

GUIDED = {
    "guided": "`GuidedSET` in the paper's model, last epoch",
    "guided last ten": "mean of its last ten epochs",
    "guided four": "mean of epochs 10, 20, 30, 40",
}


def default_answers(parts: Split, seed: int) -> dict[str, Answer]:
    """Fit once, weigh in all ways."""
    apart = take_apart(parts, seed, with_folds=True)
    return {name: way(apart, seed) for name, (_, way) in SHARES.items()}


def changed_answers(name: str) -> Callable[[Split, int], dict[str, Answer]]:
    """Fit with a change, and weigh as the default does."""

    def answers(parts: Split, seed: int) -> dict[str, Answer]:
        change = CHANGES[name]
        with change.made():
            apart = take_apart(change.samples(parts) if change.samples else parts, seed)
            return {name: answer(*weigh(apart)[1:])}

    return answers


def fits() -> dict[str, Fit]:
    """Return all fits in the order in which they are run."""
    found = {"default": Fit(default_answers, {name: text for name, (text, _) in SHARES.items()})}
    found["guided"] = Fit(guided_snapshots, GUIDED, base="guided")
    for name in CHANGES:
        if name != "default":
            found[name] = Fit(changed_answers(name), {name: CHANGED[name]})
    return found


def run_fit(fit: Fit, name: str, number: int, folder: Path) -> Iterable[dict[str, Any]]:
    """Return a row for every variant; seconds are those of the fit they share."""
    parts = split(*load_once(name, folder), number)
    started = time.process_time()
    with threadpool_limits(limits=1):
        answers = fit.answers(parts, number)
    seconds = round(time.process_time() - started, 3)
    for variant, found in answers.items():
        scores = {key: round(value, 5) for key, value in judge(parts.y_test, *found).items()}
        yield {"method": variant, "set": name, "split": number, **scores, "cpu_seconds": seconds}


def run_missing(
    path: Path, sets: list[str], splits: list[int], folder: Path, minutes: float
) -> bool:
    """Run what has no row yet until time is up; say whether all is there."""
    stop = time.monotonic() + 60 * minutes
    done = {(row["method"], row["set"], row["split"]) for row in read_rows(path)}
    for fit in fits().values():
        for number in splits:
            for name in sets:
                if all((variant, name, number) in done for variant in fit.labels):
                    continue
                if time.monotonic() > stop:
                    return False
                for row in run_fit(fit, name, number, folder):
                    if (row["method"], name, number) not in done:
                        append_row(path, row)
    return True
