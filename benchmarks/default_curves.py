"""Accuracy of the default against the number of training rows: a table and a picture.

Reads what ``python benchmarks/default.py --sets curves --seeds 0,1,2`` has appended to its CSV.
The rows of a smaller size are among those of a larger one with the same seed.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from default import CURVES, RESULTS
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "ratoon", "font.size": 9})

STYLES = {
    "ratoon": {"color": "#d55e00", "linewidth": 2.4, "zorder": 4},
    "forest": {"color": "#009e73"},
    "lightgbm": {"color": "#0072b2"},
    "dense MLP": {"color": "#707070"},
}
NAMES = {"forest": "random forest", "lightgbm": "LightGBM"}
Cells = dict[tuple[str, int, str], dict[str, tuple[float, float]]]


def read(paths: Sequence[Path]) -> Cells:
    """Return accuracy in % and CPU seconds of every seed, by set, rows and method."""
    cells: Cells = defaultdict(dict)
    for path in paths:
        with path.open() as file:
            for row in csv.DictReader(file):
                name, _, n = row["set"].partition(":")
                if name in CURVES and n:
                    found = 100 * float(row["score"]), float(row["cpu_s"])
                    cells[name, int(n), row["method"]][row["seed"]] = found
    return cells


def cell(found: dict[str, tuple[float, float]], *, is_best: bool) -> str:
    """Return mean accuracy, its standard error where there are several seeds, and mean seconds."""
    scores, seconds = np.array(list(found.values())).T
    text = f"{scores.mean():.2f}"
    if len(scores) > 1:
        text += f" ± {scores.std(ddof=1) / np.sqrt(len(scores)):.2f}"
    return f"{f'**{text}**' if is_best else text} ({seconds.mean():.2g})"


def write_table(cells: Cells, out: Path) -> None:
    """Write one line per set and number of rows."""
    lines = [
        "# The default with more and more rows",
        "",
        "Test accuracy in %: mean and standard error over draws of the training rows. In brackets,"
        " CPU seconds of a fit",
        "on one thread. Every method has its defaults. MNIST has its own test part; of the others a"
        " fifth is one.",
        "The best of a line is bold. `python benchmarks/default_curves.py` says what was run.",
        "",
        "| set | rows | draws | " + " | ".join(NAMES.get(m, m) for m in STYLES) + " |",
        "|---|---|---|" + "---|" * len(STYLES),
    ]
    for name, sizes in CURVES.items():
        for n in sizes:
            means = {
                method: float(np.mean([score for score, _ in cells[name, n, method].values()]))
                for method in STYLES
                if cells.get((name, n, method))
            }
            if not means:
                continue
            row = [
                cell(cells[name, n, method], is_best=means[method] == max(means.values()))
                if method in means
                else "-"
                for method in STYLES
            ]
            draws = sorted({len(cells[name, n, method]) for method in means})
            lines.append(f"| {name} | {n:,} | {'-'.join(map(str, draws))} | {' | '.join(row)} |")
    out.write_text("\n".join(lines) + "\n")


def panel(ax: Any, cells: Cells, name: str) -> None:
    """Draw the lines of one set."""
    for method, style in STYLES.items():
        sizes = [n for n in CURVES[name] if cells.get((name, n, method))]
        scores = [np.array(list(cells[name, n, method].values()))[:, 0] for n in sizes]
        means = [score.mean() for score in scores]
        ax.plot(sizes, means, marker="o", markersize=3.5, label=NAMES.get(method, method), **style)
    ax.set_xscale("log")
    ax.set_title(name, loc="left", fontsize=10)
    ax.set_xlabel("training rows")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    ax.set_xticks(CURVES[name] if len(CURVES[name]) < 6 else (500, 1500, 6000, 20_000, 60_000))
    ax.minorticks_off()
    ax.grid(color="#e6e6e6", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def draw(cells: Cells, out: Path) -> None:
    """Draw one panel per set."""
    figure = Figure(figsize=(9.0, 6.4), layout="constrained")
    for ax, name in zip(figure.subplots(2, 2).flat, CURVES, strict=True):
        panel(ax, cells, name)
        ax.set_ylabel("test accuracy, %")
    figure.axes[0].legend(frameon=False)
    figure.savefig(out, facecolor="white", metadata={"Date": None})


def main() -> None:
    """Write the table and the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=Path, nargs="+", default=[RESULTS / "default.csv"])
    parser.add_argument("--out", type=Path, default=RESULTS / "default-curves.md")
    given = parser.parse_args()
    cells = read(given.rows)
    write_table(cells, given.out)
    draw(cells, given.out.with_suffix(".svg"))


if __name__ == "__main__":
    main()
