"""Starts and rewiring: what does one add to the other?

The same hidden layer of 500 neurons with three inputs each on average, drawn uniformly, by the F of
every feature, or by pair strength: how well its products with others predict the classes.  Each
start is left static, or rewired by SET that settles or by RigL; training is that of the map of
rewiring.  Strengths are those of training rows, and chances of inputs are in proportion to them.

In the exclusive or of two features among 100 no single feature is informative, so F is random.
Where fewer than two features have a pair strength, F takes its place, as in the recipe.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common.tables import markdown
from numpy.typing import NDArray

from quality.rewiring import N_FEATURES, N_TEST, Parts, Task, load_once, trained
from quality.rewiring_report import found_beside, measure_missing, read_scores
from quality.rewiring_scores import Cell, Scores, gains, mean_and_error
from quality.sets import split
from ratoon import SparseMLPClassifier
from ratoon.committee.priors import pair_strength
from ratoon.estimators.strengths import strengths
from ratoon.initialise import guided
from ratoon.topology import Topology

N_NEURONS, INPUTS, N_LOOKED_AT = 500, 3, 5
STARTS = {"uniform": "uniform start", "f": "start by F", "pairs": "start by pair strength"}
REWIRED = {"static": "static", "set": "SET", "rigl": "RigL"}
XOR = tuple(Task("xor", n_samples) for n_samples in (300, 1000, 3000))
MADELON = Task("madelon", 1733)

INTRODUCTION = """\
# Starts and rewiring

Written by `python benchmarks/quality.py --starts`.  Accuracy in % at the last epoch, mean ±
standard error over seeds, which share data; 500 neurons of three inputs on average.  SET is the
form that settles; it and RigL rewire at 30 moments up to 70 % of training.  "xor" is the exclusive
or of two features among 100.
"""

GAINS = """
What rewiring gains on the same start left static, seed by seed:
"""

AHEAD = """
What a start by pair strength, left static, gains on others:
"""

WHY = """
How many percent of the first layer's connections are on features with a pair strength in the end,
after a start by it:
"""


def generate(n_samples: int, seed: int) -> Parts:
    """Two classes that depend on whether the first two of 100 features have the same sign.

    >>> generate(50, 0).x.shape
    (50, 100)
    """
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_samples + N_TEST, N_FEATURES)).astype(np.float32)
    y = (x[:, 0] * x[:, 1] > 0).astype(np.int64)
    return Parts(x[:n_samples], y[:n_samples], x[n_samples:], y[n_samples:])


def prepare(task: Task, seed: int, folder: Path | None) -> Parts:
    """Return the samples of a task; a set of the folder is split as in the study."""
    if task.kind == "xor":
        return generate(task.n_samples, seed)
    assert folder is not None
    its = split(*load_once(task.kind, folder), seed)
    return Parts(its.x, its.y, its.x_test, its.y_test)


def chances(start: str, parts: Parts) -> NDArray[np.float64]:
    """Return in proportion to what inputs are drawn at a start."""
    if start == "uniform":
        return np.ones(parts.x.shape[1])
    one_hot = np.eye(int(parts.y.max()) + 1)[parts.y]
    how: Any = "f"
    if start == "pairs":
        found = pair_strength(parts.x, one_hot, np.ones(len(parts.y)))
        how = found if np.count_nonzero(found) >= 2 else "f"
    return strengths(how, parts.x, one_hot, None, has_classes=True)


def fitted(
    task: Task, name: str, seed: int, folder: Path | None
) -> tuple[SparseMLPClassifier, Parts]:
    """Return a trained network and its samples; ``name`` is that of a start and of a strategy."""
    start, strategy = name.split()
    parts = prepare(task, seed, folder)
    shape = (parts.x.shape[1], N_NEURONS)
    first = guided(shape, INPUTS * N_NEURONS, chances(start, parts), seed=seed)
    last = Topology.full((N_NEURONS, int(parts.y.max()) + 1))
    return trained(parts, [first, last], strategy, seed), parts


def run_one(task: Task, name: str, seed: int, folder: Path | None) -> float:
    """Return the test accuracy in percent."""
    model, parts = fitted(task, name, seed, folder)
    return 100.0 * float(np.mean(model.predict(parts.x_test) == parts.y_test))


def share_on_pairs(task: Task, name: str, seed: int, folder: Path | None) -> float:
    """Return how many percent of the first layer's connections see a feature of some pair."""
    model, parts = fitted(task, name, seed, folder)
    found = chances("pairs", parts)
    inputs = model.network_.layers[0].topology.pairs()[0]
    return 100.0 * float(np.mean(found[inputs] > found.min()))


def run_missing_starts(path: Path, folder: Path | None, seeds: list[int], minutes: float) -> bool:
    """Run what has no row yet until time is up; say whether all is there."""
    tasks = [*XOR, *([MADELON] if folder is not None else [])]
    names = [f"{start} {strategy}" for start, strategy in product(STARTS, REWIRED)]
    wanted = [(name, seed, task) for seed in seeds for task in tasks for name in names]
    looked_at = [run for run in wanted if run[0].startswith("pairs") and run[1] < N_LOOKED_AT]

    def accuracy(task: Task, name: str, seed: int) -> float:
        return run_one(task, name, seed, folder)

    def share(task: Task, name: str, seed: int) -> float:
        return share_on_pairs(task, name, seed, folder)

    return measure_missing(path, wanted, minutes, accuracy) and measure_missing(
        found_beside(path), looked_at, minutes, share
    )


def write_starts(path: Path, out: Path) -> str:
    """Write accuracies, and what rewiring and starts gain."""
    scores, seen = read_scores(path), read_scores(found_beside(path))
    alone = {f"{start} {name}": None for start, name in product(STARTS, REWIRED)}
    gained = {f"{start} {name}": f"{start} static" for start in STARTS for name in ("set", "rigl")}
    ahead = {f"{start} {name}": "pairs static" for start in ("uniform", "f") for name in REWIRED}
    parts = [
        INTRODUCTION,
        markdown(_lines(scores, alone)),
        GAINS,
        markdown(_lines(scores, gained)),
        AHEAD,
        markdown(_lines(scores, ahead, sign=-1.0)),
        WHY,
        markdown(_lines(seen, {f"pairs {name}": None for name in REWIRED})),
    ]
    out.write_text("\n".join(parts) + "\n")
    return out.read_text()


def _lines(
    scores: Scores, columns: Mapping[str, str | None], sign: float = 1.0
) -> list[dict[str, str]]:
    lines = []
    for (kind, n_samples), cell in scores.items():
        n_seeds = min(len(values) for values in cell.values())
        line = {"task": kind, "samples": str(n_samples), "seeds": str(n_seeds)}
        for name, base in columns.items():
            start, strategy = name.split()
            line[f"{STARTS[start]}: {REWIRED[strategy]}"] = _text(cell, name, base, sign)
        lines.append(line)
    return lines


def _text(cell: Cell, name: str, base: str | None, sign: float) -> str:
    values = (
        np.array(list(cell.get(name, {}).values())) if base is None else gains(cell, name, base)
    )
    if values.size == 0:
        return "-"
    mean, error = mean_and_error(sign * values)
    return f"{mean:.1f} ± {error:.1f}" if base is None else f"{mean:+.1f} ± {error:.1f}"
