"""Tables and picture of the study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from ranking.methods import METHODS
from ranking.studies import ALL, FIRST_SEED, PANEL_SETS, SIZES

matplotlib.use("Agg")

import matplotlib.pyplot as plt

STYLE = {
    "feature_importances_": ("C3", "o", 2.4),
    "mean over 10 halves": ("C1", "D", 1.2),
    "before: weights of the first layer": ("C5", "P", 1.2),
    "before: rewired networks": ("C6", "X", 1.2),
    "ANOVA F": ("C0", "s", 1.4),
    "l1 logistic": ("C2", "v", 1.4),
    "random forest": ("C4", "^", 1.4),
}

Rows = list[dict[str, Any]]


def complete_numbers(rows: Rows, methods: list[str]) -> list[int]:
    """Return the seeds or splits that all of these methods have, so that means compare.

    >>> rows = [{"method": m, "number": n} for m, n in (("a", 0), ("b", 0), ("a", 1))]
    >>> complete_numbers(rows, ["a", "b"])
    [0]
    """
    have = [{row["number"] for row in rows if row["method"] == name} for name in methods]
    return sorted(set.intersection(*have)) if have else []


def mean(rows: Rows, method: str, k: int | None, numbers: list[int]) -> float:
    """Return the mean value of a method, in percent."""
    found = [
        row["value"]
        for row in rows
        if row["method"] == method and row["number"] in numbers and k in (None, row["k"])
    ]
    return 100 * float(np.mean(found)) if found else float("nan")


def recovery_table(rows: Rows) -> str:
    """Return precision at k, one column per kind of data."""
    rows = [row for row in rows if row["study"] == "recovery"]
    kinds = list(dict.fromkeys(row["data"] for row in rows))
    methods = [name for name in METHODS if any(row["method"] == name for row in rows)]
    parts = {kind: [row for row in rows if row["data"] == kind] for kind in kinds}
    numbers = {kind: complete_numbers(parts[kind], methods) for kind in kinds}
    counts = {len(found) for found in numbers.values()}
    lines = [
        f"Precision at k in %, mean of {'/'.join(map(str, sorted(counts)))} generated sets of each"
        f" kind (seeds from {FIRST_SEED}); k is the number of informative features.",
        "",
        f"| method | {' | '.join(kinds)} | mean | median CPU seconds |",
        "|---|" + "---|" * (len(kinds) + 2),
    ]
    for name in methods:
        values = [mean(parts[kind], name, None, numbers[kind]) for kind in kinds]
        cells = [f"{value:.1f}" for value in (*values, float(np.mean(values)))]
        seconds = np.median([row["cpu_seconds"] for row in rows if row["method"] == name])
        lines.append(f"| {name} | {' | '.join(cells)} | {seconds:.2f} |")
    return "\n".join(lines) + "\n"


def panel_table(rows: Rows) -> str:
    """Return the accuracy of panels of some sizes, averaged over sets, and set by set."""
    rows = [row for row in rows if row["study"] == "panels"]
    sets = [name for name in PANEL_SETS if any(row["data"] == name for row in rows)]
    methods = [name for name in METHODS if any(row["method"] == name for row in rows)]
    parts = {name: [row for row in rows if row["data"] == name] for name in sets}
    numbers = {name: complete_numbers(parts[name], methods) for name in sets}
    n_splits = ", ".join(f"{name} {len(numbers[name])}" for name in sets)
    lines = [
        "Test accuracy in % of a support vector machine on the first k features, ranked by the"
        f" training rows; splits of two thirds to one third: {n_splits}. First the mean over the"
        " sets by k, then that over k by set.",
        "",
        f"| ranking | {' | '.join(f'k = {k}' for k in SIZES)} | mean | {' | '.join(sets)} |",
        "|---|" + "---|" * (len(SIZES) + len(sets) + 1),
    ]
    for method in methods:
        by_k = [
            float(np.mean([mean(parts[name], method, k, numbers[name]) for name in sets]))
            for k in SIZES
        ]
        by_set = [
            float(np.mean([mean(parts[name], method, k, numbers[name]) for k in SIZES]))
            for name in sets
        ]
        cells = " | ".join(f"{value:.1f}" for value in (*by_k, float(np.mean(by_k)), *by_set))
        lines.append(f"| {method} | {cells} |")
    whole = [f"{name} {mean(parts[name], ALL, None, numbers[name]):.1f}" for name in sets]
    lines += ["", f"With all features: {', '.join(whole)}."]
    return "\n".join(lines) + "\n"


def draw(rows: Rows, path: Path) -> None:
    """Draw accuracy over the size of the panel, a picture per set."""
    rows = [row for row in rows if row["study"] == "panels"]
    sets = [name for name in PANEL_SETS if any(row["data"] == name for row in rows)]
    figure, places = plt.subplots(
        3, -(-(len(sets) + 1) // 3), figsize=(12.5, 9.0), layout="constrained"
    )
    for name, axes in zip(sets, places.flat, strict=False):
        part = [row for row in rows if row["data"] == name]
        methods = [m for m in STYLE if any(row["method"] == m for row in part)]
        numbers = complete_numbers(part, methods)
        for method in methods:
            colour, marker, width = STYLE[method]
            values = [mean(part, method, k, numbers) for k in SIZES]
            axes.plot(
                SIZES, values, color=colour, marker=marker, linewidth=width, markersize=5,
                label=method,
            )  # fmt: skip
        axes.axhline(mean(part, ALL, None, numbers), color="k", linestyle=":", label=ALL)
        axes.set_xscale("log")
        axes.set_xticks(SIZES, [str(k) for k in SIZES], minor=False)
        axes.minorticks_off()
        axes.set_title(f"{name} ({len(numbers)} splits)", loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel("features in the panel")
        axes.set_ylabel("test accuracy, %")
    labels = places.flat[0].get_legend_handles_labels()
    for axes in list(places.flat)[len(sets) :]:
        axes.axis("off")
    list(places.flat)[-1].legend(*labels, frameon=False, loc="center", fontsize=9)
    figure.savefig(path, dpi=100, metadata={"Software": None})
    plt.close(figure)
