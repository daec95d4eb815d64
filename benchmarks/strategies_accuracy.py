"""Every strategy on real data: same start, same samples in the same order, same budget.

What is done is `ratoon.experiments.strategies`, which `ratoon compare-strategies` runs too.  Every
run is a line of the CSV file; runs that are there already are not repeated, so that the study can
be stopped and resumed at any time.  Files that are not in the folder are left out and named.
"""

from __future__ import annotations

import argparse
import csv
import time
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from common.machine import MachineState, describe
from common.tables import markdown, numbers, parser
from numpy.typing import NDArray

from ratoon.datasets import read
from ratoon.experiments.strategies import (
    StrategySettings,
    digits,
    known_strategies,
    run_strategy,
)
from ratoon.experiments.strategy_lines import StrategyComparison, StrategyRun

EXAMPLES = """\
  strategies_accuracy.py --sets digits --splits 2                       a minute
  strategies_accuracy.py --data FOLDER --markdown accuracy.md --plot accuracy.png
  strategies_accuracy.py --data FOLDER --minutes 4      resumes for four minutes
"""
RESULTS = Path(__file__).parent / "results"
SETS = "digits,TOX-171,colon,lymphoma,ALLAML,madelon"
Key = tuple[str, str, str, int]


def load(name: str, folder: Path) -> tuple[NDArray[np.float32], NDArray[np.int64]] | None:
    """Return samples and classes of ``digits`` or of a file in the folder, None if it is absent."""
    if name == "digits":
        return digits()
    paths = sorted(folder.glob(f"{name}.*"))
    if not paths:
        return None
    data = read(paths[0])
    x = data.X.toarray() if data.is_sparse else np.asarray(data.X)
    return x.astype(np.float32), np.unique(data.y, return_inverse=True)[1]


def words_of(settings: StrategySettings) -> str:
    """Return network and budget as a word that a CSV file can hold."""
    hidden = "x".join(map(str, settings.hidden))
    return f"{hidden} eps {settings.epsilon:g} lr {settings.learning_rate:g} ep {settings.n_epochs}"


def read_runs(path: Path) -> dict[Key, StrategyRun]:
    """Return the runs of earlier times."""
    found: dict[Key, StrategyRun] = {}
    if not path.exists():
        return found
    kinds = {field.name: field.type for field in fields(StrategyRun)}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            data, settings = row.pop("data"), row.pop("settings")
            values: dict[str, Any] = {}
            for name, text in row.items():
                kind = str(kinds[name])
                if kind == "str":
                    values[name] = text
                elif text == "":
                    values[name] = None
                else:
                    values[name] = int(text) if kind == "int" else float(text)
            run = StrategyRun(**values)
            found[data, settings, run.strategy, run.split] = run
    return found


def append_run(path: Path, data: str, settings: str, run: StrategyRun) -> None:
    """Add one line."""
    values = {
        name: f"{value:.5g}" if isinstance(value, float) else value
        for name, value in asdict(run).items()
    }
    row = {"data": data, "settings": settings, **values}
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def run_missing(given: argparse.Namespace, settings: StrategySettings) -> bool:
    """Do what has not been done yet; false if time was up before the end."""
    done, words = read_runs(given.csv), words_of(settings)
    strategies = known_strategies(given.strategies.split(",") if given.strategies else None)
    ends = time.monotonic() + 60.0 * given.minutes
    for data in given.sets.split(","):
        loaded = load(data, given.data)
        if loaded is None:
            print(f"{data} is not in {given.data}: left out", flush=True)
            continue
        for split in range(given.splits):
            for name, strategy in strategies.items():
                if (data, words, name, split) in done:
                    continue
                if time.monotonic() > ends:
                    return False
                run = run_strategy(
                    name, strategy, *loaded, split=split, settings=settings, record=split == 0
                )
                append_run(given.csv, data, words, run)
    return True


def row_of(line: Any) -> dict[str, Any]:
    """Return a strategy's line of the table."""
    gained = "-" if line.gain is None else f"{100 * line.gain:+.1f}"
    if line.gain_error is not None:
        gained += f" ± {100 * line.gain_error:.1f}"
    per_rewiring = line.seconds_per_rewiring
    return {
        "strategy": line.strategy,
        "accuracy": f"{100 * line.accuracy:.1f} ± {100 * line.deviation:.1f}",
        "- static": gained,
        "p": None if line.p is None else f"{line.p:.2f}",
        "diverged": line.n_diverged,
        "rewirings": line.n_rewirings,
        "ms each": None if per_rewiring is None else 1e3 * per_rewiring,
        "training, s": line.seconds,
        "explored": None if line.explored is None else f"{line.explored:.1%}",
        "connections": line.n_connections,
        "MB": line.array_bytes / 1e6,
        "remembered, MB": line.state_bytes / 1e6,
    }


def tables(found: dict[str, StrategyComparison]) -> str:
    """Return one table per data set."""
    parts = []
    for data, comparison in found.items():
        n_splits = max(line.n_splits for line in comparison.lines())
        rows = markdown([row_of(line) for line in comparison.lines()])
        parts.append(f"**{data}**, {n_splits} splits\n\n{rows}")
    return "\n\n".join(parts)


def draw(found: dict[str, StrategyComparison], path: Path) -> None:
    """Draw all data sets below each other."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    from ratoon.report import StrategyDisplay

    figure, axes = pyplot.subplots(
        len(found), 3, figsize=(9.0, 2.6 * len(found)), squeeze=False, layout="constrained"
    )
    last = list(found)[-1]
    for row, (data, comparison) in zip(axes, found.items(), strict=True):
        lines = comparison.lines()
        for ax in row[1:]:
            ax.sharey(row[0])
            ax.tick_params(labelleft=False)
        StrategyDisplay(
            {line.strategy: comparison.gains(line.strategy) for line in lines},
            {
                line.strategy: line.seconds_per_rewiring
                for line in lines
                if line.seconds_per_rewiring is not None
            },
            {line.strategy: line.explored for line in lines if line.explored is not None},
            title=data,
        ).plot(row, with_labels=data == last)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run what is missing, then write table and plot of all there is."""
    arguments = parser(__doc__ or "", EXAMPLES)
    arguments.add_argument("--sets", default=SETS, help=f"data sets (default {SETS})")
    arguments.add_argument("--data", type=Path, default=Path(), help="folder with the files")
    arguments.add_argument("--strategies", help="only these, with commas between")
    arguments.add_argument("--splits", type=int, default=20)
    arguments.add_argument("--epochs", type=int, default=50)
    arguments.add_argument("--hidden", type=numbers, default=[500, 500])
    arguments.add_argument("--csv", type=Path, default=RESULTS / "strategies-accuracy.csv")
    arguments.add_argument("--markdown", type=Path, metavar="OUT", help="write the tables there")
    arguments.add_argument("--plot", type=Path, metavar="OUT", help="draw to this file")
    arguments.add_argument("--minutes", type=float, default=600.0, help="stop after so many")
    given = arguments.parse_args()
    settings = StrategySettings(hidden=tuple(given.hidden), n_epochs=given.epochs)
    with MachineState() as machine:
        complete = run_missing(given, settings)
    words = words_of(settings)
    runs = read_runs(given.csv)
    found = {}
    for data in given.sets.split(","):
        here = [run for key, run in runs.items() if key[:2] == (data, words)]
        if here:
            found[data] = StrategyComparison(here)
    text = f"{words}\n\n{tables(found)}\n\n{describe(machine.facts())}\n"
    print(text if complete else f"{text}\nnot complete: run again to continue\n")
    if given.markdown:
        given.markdown.write_text(text)
    if given.plot and found:
        draw(found, given.plot)


if __name__ == "__main__":
    main()
