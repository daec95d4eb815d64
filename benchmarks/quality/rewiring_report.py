"""The map of where rewiring helps, on paper: rows that can be resumed, a table, a heat map."""

from __future__ import annotations

import csv
import time
import warnings
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from common.tables import markdown
from threadpoolctl import threadpool_limits

from quality.rewiring import SAMPLES, SIGNALS, STRATEGIES, Task, run_one, tasks

matplotlib.use("Agg")

import matplotlib.pyplot as plt

Scores = dict[tuple[str, int], dict[str, dict[int, float]]]
COLUMNS = ("kind", "samples", "strategy", "seed", "accuracy")
MOST, DARK = 20.0, 13.0
SHOWN = {"set": "SET", "rigl": "RigL", "published": "SET as published"}

INTRODUCTION = """\
# Where rewiring helps

Written by `python benchmarks/quality.py --rewiring`.  Accuracy in % at the last epoch, and what a
strategy gains on the same network left static: mean ± standard error over seeds, which share data
and start.  One hidden layer from a uniform start, five inputs per neuron; see
`benchmarks/quality/rewiring.py`.  "pairs" are products of two features, "threes" the parity of
three, among 100 features; digits have 384 features of shuffled pixels beside their 64.
"""


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
    scores, stop = read_scores(path), time.monotonic() + 60 * minutes
    wanted = [(task, name, seed) for seed in seeds for task in tasks(folder) for name in STRATEGIES]
    for task, name, seed in wanted:
        if seed in scores.get(task, {}).get(name, {}):
            continue
        if time.monotonic() > stop:
            return False
        with warnings.catch_warnings(), threadpool_limits(limits=1):
            warnings.simplefilter("ignore")
            accuracy = run_one(task, name, seed, folder)
        _append(path, task, name, seed, accuracy)
    return True


def _append(path: Path, task: Task, name: str, seed: int, accuracy: float) -> None:
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        writer.writerow([*task, name, seed, round(accuracy, 3)])


def gains(cell: dict[str, dict[int, float]], name: str) -> Any:
    """Return what a strategy gains on static, seed by seed.

    >>> gains({"static": {0: 50.0, 1: 60.0}, "set": {0: 55.0, 2: 1.0}}, "set").tolist()
    [5.0]
    """
    mine, static = cell.get(name, {}), cell.get("static", {})
    return np.array([mine[seed] - static[seed] for seed in sorted(mine.keys() & static.keys())])


def write_map(path: Path, out: Path) -> str:
    """Write table and picture of the rows there are."""
    scores = read_scores(path)
    lines = []
    for (kind, n_samples), cell in scores.items():
        if "static" not in cell:
            continue
        line = {"task": kind, "samples": str(n_samples), "seeds": str(len(cell["static"]))}
        line["static"] = f"{np.mean(list(cell['static'].values())):.1f}"
        lines.append(line | {label: _text(gains(cell, name)) for name, label in SHOWN.items()})
    draw(scores, out.with_suffix(".png"))
    out.write_text(
        INTRODUCTION + "\n" + markdown(lines) + f"\n\n![Map]({out.with_suffix('.png').name})\n"
    )
    return out.read_text()


def _text(gain: Any) -> str:
    if gain.size == 0:
        return "-"
    if gain.size == 1:
        return f"{gain.mean():+.1f}"
    return f"{gain.mean():+.1f} ± {gain.std(ddof=1) / np.sqrt(gain.size):.1f}"


def draw(scores: Scores, path: Path) -> None:
    """Draw gains over the generated tasks, one panel per strategy."""
    figure, panels = plt.subplots(1, len(SHOWN), figsize=(11, 4), sharey=True, layout="constrained")
    for panel, (name, label) in zip(panels, SHOWN.items(), strict=True):
        values = np.full((len(SIGNALS), len(SAMPLES)), np.nan)
        for i, kind in enumerate(SIGNALS):
            for j, n_samples in enumerate(SAMPLES):
                gain = gains(scores.get((kind, n_samples), {}), name)
                if gain.size:
                    values[i, j] = gain.mean()
                    colour = "white" if abs(gain.mean()) > DARK else "black"
                    text = f"{gain.mean():+.1f}"
                    panel.text(j, i, text, ha="center", va="center", fontsize=9, color=colour)
        image = panel.imshow(values, cmap="RdBu", vmin=-MOST, vmax=MOST, aspect="auto")
        panel.set_xticks(range(len(SAMPLES)), [f"{n:,}" for n in SAMPLES])
        panel.set_yticks(range(len(SIGNALS)), SIGNALS)
        panel.set_xlabel("samples")
        panel.set_title(f"{label} minus static")
    figure.colorbar(image, ax=panels, label="points of accuracy")
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)
