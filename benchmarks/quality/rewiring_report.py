"""The map of where rewiring helps: rows that can be resumed, tables, heat maps."""

from __future__ import annotations

import csv
import time
import warnings
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common.tables import markdown
from threadpoolctl import threadpool_limits

from quality.rewiring import (
    STRATEGIES,
    Task,
    run_one,
    signal_found,
    size_left,
    tasks,
)
from quality.rewiring_picture import draw_all, draw_generated
from quality.rewiring_scores import (
    SHOWN,
    SMALLER,
    Cell,
    Scores,
    gains,
    groups,
    mean_and_error,
    to_show,
    with_all,
)

WHY = (Task("linear", 50), Task("pairs", 5000))
"""Tasks on which to look where connections end up."""

NEST = ("nest", "nest_seed")
PRUNED = {name: label for name, label in SMALLER.items() if name.startswith("neurons")}

SIZES = (*WHY, Task("digits", 500))
"""Tasks on which to count how many are left."""

COLUMNS = ("kind", "samples", "strategy", "seed", "accuracy")

INTRODUCTION = """\
# Where rewiring helps

Written by `python benchmarks/quality.py --rewiring`.  Accuracy in % at the last epoch, and what a
strategy gains on the same network left static: mean ± standard error over seeds, which share data
and start.  One hidden layer from a uniform start, five inputs per neuron; when and how much each
strategy rewires is described in `benchmarks/quality/rewiring.py`.  "pairs" are products of two
features, "threes" the parity of three, among 100 features; digits have 384 features of shuffled
pixels in addition to their 64; seeds of the wide sets are their splits.

*SET*, *RigL*, *GSE*, *SNFS* and *DSR* rewire at the same 30 moments up to 70 % of training.
*Drawn* is SET with random instead of zero weights for what it grows, *early* is SET ten times
within the first 5 % of training with nine tenths replaced at first, and *GuidedSET* the same with
inputs drawn by F².  *DEEP R* rewires every ten steps, *published* SET after every epoch, both to
the end.  *NeST* starts as the others do, has three times the connections at 35 % of training and as
many as the others from 70 % on; *seed* starts with half of the neurons and has at most one and a
half times the connections.
"""

CHANGE_IN_SIZE = """\
## Networks that change in size

Gains on static over the tasks that all of these were tried on, RigL for comparison:
"""

SMALLER_NETWORKS = """\
Neuron pruning takes a fifth of the neurons out at 40 % of training and again after every further
8 %.  *Neurons pruned* does nothing besides, the others are SET at all other epochs, in the form
that settles or as published.  *Half* is the seed that NeST grows from, left static; *small* a
static network of a sixth of the neurons with eight inputs each.  Connections in the end, in % of
those of the other strategies:
"""


def found_beside(path: Path, what: str = "why") -> Path:
    """Return the file of what `signal_found` or `size_left` found, next to the rows of the map."""
    return path.with_name(f"{path.stem}-{what}.csv")


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
    return measure_missing(path, wanted, minutes, lambda *run: run_one(*run, folder))


def run_missing_found(path: Path, seeds: list[int], minutes: float) -> bool:
    """Measure where connections end up, as `run_missing` measures accuracies."""
    return measure_missing(path, product(("static", *SHOWN), seeds, WHY), minutes, signal_found)


def run_missing_sizes(path: Path, seeds: list[int], minutes: float) -> bool:
    """Count connections of networks that change in size, as `run_missing` measures accuracies."""
    return measure_missing(path, product((*NEST, *SMALLER), seeds, SIZES), minutes, size_left)


def measure_missing(
    path: Path,
    wanted: Iterable[tuple[str, int, Task]],
    minutes: float,
    measure: Callable[[Task, str, int], float],
) -> bool:
    """Measure what has no row yet until time is up; say whether all is there."""
    scores, stop = read_scores(path), time.monotonic() + 60 * minutes
    for name, seed, task in wanted:
        if seed in scores.get(task, {}).get(name, {}):
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
    """Return what `signal_found` or `size_left` found, by strategy."""
    labels = {"static": "static", **SHOWN, **SMALLER}
    names = [name for name in labels if any(name in cell for cell in scores.values())]
    lines = []
    for (kind, n_samples), cell in scores.items():
        n_seeds = max(len(values) for values in cell.values())
        line = {"task": kind, "samples": str(n_samples), "seeds": str(n_seeds)}
        for name in names:
            values = list(cell.get(name, {}).values())
            line[labels[name]] = f"{np.mean(values):.1f}" if values else "-"
        lines.append(line)
    return lines


def write_map(path: Path, out: Path) -> str:
    """Write tables and pictures of the rows there are."""
    scores = {task: cell for task, cell in read_scores(path).items() if "static" in cell}
    resized = with_all(scores, (*NEST, *SMALLER))
    pictures = [out.with_suffix(".png")]
    draw_generated(scores, pictures[0])
    if to_show(scores):
        pictures.append(out.with_name(f"{out.stem}-all.png"))
        draw_all(scores, pictures[1])
    parts = [
        INTRODUCTION,
        "## In short\n\nMean gain over the tasks of a group; a dash where not all of them were"
        " tried.  The last lines count\ntasks more than two standard errors above and below"
        " static.\n",
        markdown(summary(scores, SHOWN)) + "\n",
        CHANGE_IN_SIZE,
        markdown(summary(resized, {name: SHOWN[name] for name in ("rigl", *NEST)})) + "\n",
        "What NeST gains on the seed that it grows from:\n",
        markdown(summary(resized, {"nest_seed": SHOWN["nest_seed"]}, base="half")) + "\n",
        SMALLER_NETWORKS,
        markdown(found_lines(read_scores(found_beside(path, "size")))) + "\n",
        "What they gain on the static network of full size:\n",
        markdown(summary(resized, SMALLER)) + "\n",
        "What pruning gains on the network that is small from the start:\n",
        markdown(summary(resized, PRUNED, base="small")) + "\n",
        "## Why\n\nWhat the first layer sees in the end.  For the sum: how many percent of its"
        " connections are on the\nfour informative features of 100.  For pairs: how many"
        " of 300 neurons see both factors\nof a product.\n",
        markdown(found_lines(read_scores(found_beside(path)))) + "\n",
        *(f"![Map]({picture.name})\n" for picture in pictures),
        "## All tasks\n",
        markdown(task_lines(scores, SHOWN)) + "\n",
        markdown(task_lines(scores, SMALLER)) + "\n",
    ]
    out.write_text("\n".join(parts))
    return out.read_text()


def task_lines(scores: Scores, shown: dict[str, str]) -> list[dict[str, str]]:
    """Return what every strategy gains on every task."""
    lines = []
    for (kind, n_samples), cell in scores.items():
        line = {"task": kind, "samples": str(n_samples), "seeds": str(len(cell["static"]))}
        line["static"] = f"{np.mean(list(cell['static'].values())):.1f}"
        lines.append(line | {label: _text(gains(cell, name)) for name, label in shown.items()})
    return lines


def summary(scores: Scores, shown: dict[str, str], base: str = "static") -> list[dict[str, str]]:
    """Return the mean gain of strategies on groups of tasks, and how often it is sure."""
    lines = []
    for title, cells in groups(scores).items():
        line = {"tasks": f"{title} ({len(cells)})"}
        lines.append(line | {label: _mean(cells, name, base) for name, label in shown.items()})
    for title, sign in (("tasks tried", 0.0), ("sure gains", 1.0), ("sure losses", -1.0)):
        line = {"tasks": title}
        for name, label in shown.items():
            found = [mean_and_error(gains(cell, name, base)) for cell in scores.values()]
            tried = [(mean, error) for mean, error in found if np.isfinite(mean)]
            sure = [sign * mean > 2 * error for mean, error in tried]
            line[label] = str(sum(sure) if sign else len(tried))
        lines.append(line)
    return lines


def _mean(cells: list[Cell], name: str, base: str) -> str:
    means, errors = np.transpose([mean_and_error(gains(cell, name, base)) for cell in cells])
    if not np.isfinite(means).all():
        return "-"
    return f"{means.mean():+.1f} ± {np.sqrt(np.square(errors).sum()) / len(cells):.1f}"


def _text(gain: Any) -> str:
    if gain.size == 0:
        return "-"
    if gain.size == 1:
        return f"{gain.mean():+.1f}"
    mean, error = mean_and_error(gain)
    return f"{mean:+.1f} ± {error:.1f}"
