"""The map of where rewiring helps, on paper: rows that can be resumed, tables, heat maps."""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common.tables import markdown
from threadpoolctl import threadpool_limits

from quality.rewiring import (
    ON_FEW,
    STRATEGIES,
    Task,
    is_tried,
    run_one,
    signal_found,
    tasks,
)
from quality.rewiring_picture import draw_all, draw_generated
from quality.rewiring_scores import SHOWN, Scores, gains, groups, mean_and_error, to_show, with_all

WHY = (Task("linear", 50), Task("pairs", 5000))
"""Tasks on which to look where connections end up."""

COLUMNS = ("kind", "samples", "strategy", "seed", "accuracy")

INTRODUCTION = """\
# Where rewiring helps

Written by `python benchmarks/quality.py --rewiring`.  Accuracy in % at the last epoch, and what a
strategy gains on the same network left static: mean ± standard error over seeds, which share data
and start.  One hidden layer from a uniform start, five inputs per neuron; when and how much each
strategy rewires is told in `benchmarks/quality/rewiring.py`.  "pairs" are products of two features,
"threes" the parity of three, among 100 features; digits have 384 features of shuffled pixels beside
their 64; seeds of the wide sets are their splits.

*SET*, *RigL*, *GSE*, *SNFS* and *DSR* rewire at the same 30 moments up to 70 % of training.
*Drawn* is SET with random instead of zero weights for what it grows, *early* is SET ten times
within the first 5 % of training with nine tenths replaced at first, and *GuidedSET* the same with
inputs drawn by F².  *DEEP R* rewires every ten steps, *published* SET after every epoch, both to
the end.
"""


def found_beside(path: Path) -> Path:
    """Return the file of what `signal_found` found, beside the rows of the map."""
    return path.with_name(f"{path.stem}-why.csv")


def read_scores(path: Path) -> Scores:
    """Return ``{(kind, samples): {strategy: {seed: accuracy}}}``."""
    scores: Scores = {}
    if path.exists():
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                cell = scores.setdefault((row["kind"], int(row["samples"])), {})
                cell.setdefault(row["strategy"], {})[int(row["seed"])] = float(row["accuracy"])
    return scores


def run_missing(path: Path, folder: Path | None, seeds: list[int], minutes: float) -> bool:
    """Run what has no row yet until time is up; say whether all is there."""
    wanted = product(STRATEGIES, seeds, list(tasks(folder)))
    return _measure(path, wanted, minutes, lambda *run: run_one(*run, folder))


def run_missing_found(path: Path, seeds: list[int], minutes: float) -> bool:
    """Measure where connections end up, as `run_missing` measures accuracies."""
    return _measure(path, product(("static", *SHOWN), seeds, WHY), minutes, signal_found)


def _measure(
    path: Path,
    wanted: Iterable[tuple[str, int, Task]],
    minutes: float,
    measure: Callable[[Task, str, int], float],
) -> bool:
    scores, stop = read_scores(path), time.monotonic() + 60 * minutes
    for name, seed, task in wanted:
        if not is_tried(name, task) or seed in scores.get(task, {}).get(name, {}):
            continue
        if time.monotonic() > stop:
            return False
        with warnings.catch_warnings(), threadpool_limits(limits=1):
            warnings.simplefilter("ignore")
            _append(path, task, name, seed, measure(task, name, seed))
    return True


def _append(path: Path, task: Task, name: str, seed: int, accuracy: float) -> None:
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        writer.writerow([*task, name, seed, round(accuracy, 3)])


def found_lines(scores: Scores) -> list[dict[str, str]]:
    """Return what `signal_found` found, by strategy."""
    lines = []
    for (kind, n_samples), cell in scores.items():
        line = {"task": kind, "samples": str(n_samples), "seeds": str(len(cell["static"]))}
        for name in ("static", *SHOWN):
            values = list(cell.get(name, {}).values())
            line[SHOWN.get(name, name)] = f"{np.mean(values):.1f}" if values else "-"
        lines.append(line)
    return lines


def write_map(path: Path, out: Path) -> str:
    """Write tables and pictures of the rows there are."""
    scores = {task: cell for task, cell in read_scores(path).items() if "static" in cell}
    pictures = [out.with_suffix(".png")]
    draw_generated(scores, pictures[0])
    if to_show(scores):
        pictures.append(out.with_name(f"{out.stem}-all.png"))
        draw_all(scores, pictures[1])
    parts = [
        INTRODUCTION,
        "## In short\n\nMean gain over the tasks of a group that all of these were tried on.  The"
        " last lines count\ntasks more than two standard errors above and below static.\n",
        markdown(summary(scores, [name for name in SHOWN if name not in ON_FEW])) + "\n",
        "## All strategies\n\nThe tasks that all strategies were tried on.\n",
        markdown(task_lines(with_all(scores, ON_FEW))) + "\n",
        "## Why\n\nWhat the first layer sees in the end.  For the sum: how many percent of its"
        " connections are on the\nfour features of 100 that tell the classes.  For pairs: how many"
        " of 300 neurons see both factors\nof a product.\n",
        markdown(found_lines(read_scores(found_beside(path)))) + "\n",
        *(f"![Map]({picture.name})\n" for picture in pictures),
        "## All tasks\n",
        markdown(task_lines(scores)) + "\n",
    ]
    out.write_text("\n".join(parts))
    return out.read_text()


def task_lines(scores: Scores) -> list[dict[str, str]]:
    """Return what every strategy gains on every task."""
    lines = []
    for (kind, n_samples), cell in scores.items():
        line = {"task": kind, "samples": str(n_samples), "seeds": str(len(cell["static"]))}
        line["static"] = f"{np.mean(list(cell['static'].values())):.1f}"
        lines.append(line | {label: _text(gains(cell, name)) for name, label in SHOWN.items()})
    return lines


def summary(scores: Scores, names: Sequence[str]) -> list[dict[str, str]]:
    """Return the mean gain of strategies on groups of tasks, and how often it is sure."""
    shown = {name: SHOWN[name] for name in SHOWN if name in names}
    compared = with_all(scores, names)
    lines = []
    for title, cells in groups(compared).items():
        line = {"tasks": f"{title} ({len(cells)})"}
        for name, label in shown.items():
            means, errors = np.transpose([mean_and_error(gains(cell, name)) for cell in cells])
            error = np.sqrt(np.square(errors).sum()) / len(cells)
            line[label] = f"{means.mean():+.1f} ± {error:.1f}"
        lines.append(line)
    for title, sign in (("sure gains", 1.0), ("sure losses", -1.0)):
        line = {"tasks": f"{title}, of {len(compared)}"}
        for name, label in shown.items():
            found = [mean_and_error(gains(cell, name)) for cell in compared.values()]
            line[label] = str(sum(sign * mean > 2 * error for mean, error in found))
        lines.append(line)
    return lines


def _text(gain: Any) -> str:
    if gain.size == 0:
        return "-"
    if gain.size == 1:
        return f"{gain.mean():+.1f}"
    mean, error = mean_and_error(gain)
    return f"{mean:+.1f} ± {error:.1f}"
