"""What strategies gain on a static network, task by task and over groups of tasks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from quality.rewiring import SIGNALS
from quality.sets import WIDE

Cell = dict[str, dict[int, float]]
Scores = dict[tuple[str, int], Cell]

SHOWN = {
    "set": "SET",
    "rigl": "RigL",
    "gse": "GSE",
    "snfs": "SNFS",
    "dsr": "DSR",
    "guided": "GuidedSET",
    "set_early": "SET, early",
    "set_drawn": "SET, drawn",
    "deep_r": "DEEP R",
    "nest": "NeST",
    "nest_seed": "NeST, seed",
    "published": "SET, published",
}
"""Strategies in the order of tables and pictures, and what they are called there."""

SMALLER = {
    "half": "half from the start",
    "small": "small from the start",
    "neurons": "neurons pruned",
    "neurons_set": "pruned, SET",
    "neurons_published": "pruned, SET published",
}
"""Those that end with fewer connections, in tables of their own."""

SOME_GENERATED = [(kind, n) for n in (50, 500, 5000) for kind in ("linear", "1/2 pairs", "pairs")]

MANY_SAMPLES = 1500


def gains(cell: Cell, name: str, base: str = "static") -> NDArray[np.float64]:
    """Return what a strategy gains on static or on another one, seed by seed.

    >>> gains({"static": {0: 50.0, 1: 60.0}, "set": {0: 55.0, 2: 1.0}}, "set").tolist()
    [5.0]
    """
    mine, other = cell.get(name, {}), cell.get(base, {})
    return np.array([mine[seed] - other[seed] for seed in sorted(mine.keys() & other.keys())])


def with_all(scores: Scores, names: Iterable[str]) -> Scores:
    """Return the tasks that a static network and all these strategies were tried on.

    >>> with_all({("pairs", 50): {"static": {0: 50.0}}}, ["set"])
    {}
    """
    wanted = {"static", *names}
    return {task: cell for task, cell in scores.items() if wanted <= cell.keys()}


def mean_and_error(gain: NDArray[np.float64]) -> tuple[float, float]:
    """Return mean and standard error, NaN where there are no values.

    >>> mean_and_error(np.array([1.0, 3.0]))
    (2.0, 1.0)
    """
    if gain.size == 0:
        return float("nan"), float("nan")
    error = float(gain.std(ddof=1) / np.sqrt(gain.size)) if gain.size > 1 else float("nan")
    return float(gain.mean()), error


def groups(scores: Scores) -> dict[str, list[Cell]]:
    """Return the tasks that belong together.

    >>> list(groups({("pairs", 50): {"static": {0: 50.0}}}))
    ['interactions, to 500 samples']
    """
    found: dict[str, list[Cell]] = {}
    for (kind, n_samples), cell in scores.items():
        found.setdefault(_group(kind, n_samples), []).append(cell)
    return found


def _group(kind: str, n_samples: int) -> str:
    if kind == "linear":
        return "sums"
    if kind == "threes":
        return "parity of three"
    if kind in SIGNALS:
        few = "to 500 samples" if n_samples < MANY_SAMPLES else "from 1,500 samples"
        return f"interactions, {few}"
    if kind in WIDE:
        return "wide sets"
    return "text" if kind in ("PCMAC", "BASEHOCK") else kind


def to_show(scores: Scores) -> Scores:
    """Return the tasks to show all strategies on: some generated ones, then all others."""
    return {
        task: cell
        for task, cell in scores.items()
        if task[0] not in SIGNALS or task in SOME_GENERATED
    }
