"""The report of the study: Markdown tables, a small CSV of them, and a picture."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from common.tables import markdown

from quality.compare import Rows, Table, comparable, difference, mean_ranks, tabulated
from quality.rows import METHODS
from quality.sets import MANY, WIDE

REFERENCE = "ratoon"
LABELS = {
    "ratoon": "**ratoon, default**",
    "ridge": "ridge CV",
    "f_ridge": "F-weighted ridge",
    "l1": "l1 logistic, tuned",
    "two_phase": "ANOVA + SVM, tuned",
    "linear_svc": "LinearSVC",
    "forest": "random forest 500",
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "recipe_g": "recipe G",
    "recipe_g_part": "recipe G, no linear path",
    "fixprob": "FixProb, last epoch",
    "set": "SET (paper), last epoch",
    "set_settles": "SET that settles, last epoch",
    "set_guided": "SET that grows by strength, last epoch",
}
OTHERS = (
    ("balanced accuracy", "balanced"),
    ("log-loss", "log_loss"),
    ("Brier", "brier"),
    ("calibration error", "calibration_error"),
    ("CPU s", "cpu_seconds"),
)

INTRODUCTION = """\
Written by `python benchmarks/quality.py`.  Stratified splits, two thirds to train; accuracy in %,
mean ± standard deviation over splits; each set counts the same in means.
`SparseMLPClassifier()` has default parameters and gets raw features; text sets are used dense by
every method.  Intervals over splits take splits as independent, which, sharing rows, they are not
quite; those over sets say what to expect of sets like these.  Where a line has fewer splits,
differences are taken over the splits both have.  Recipe G without its linear path also grows at
random; SET and FixProb train 40 epochs.  XGBoost and LightGBM have 200 trees, learning rate 0.1 and
at most 300 features per tree, the latter leaves of at least 5 rows, everywhere.  Log-loss and the
like of ridge and SVM read their decisions as logits, without calibration."""


def groups(rows: Rows) -> dict[str, list[str]]:
    """Return the sets that have rows, by group."""
    present = list(dict.fromkeys(row["set"] for row in rows))
    found = {
        "Wide sets": [name for name in WIDE if name in present],
        "Sets with more samples": [name for name in MANY if name in present],
        "Other sets": sorted(set(present) - set(WIDE) - set(MANY)),
    }
    return {title: sets for title, sets in found.items() if sets}


def accuracy_lines(table: Table, sets: list[str]) -> list[dict[str, Any]]:
    """Mean and deviation of every method on every set; the mean only where all sets are there."""
    lines = []
    for method in METHODS:
        cells = [table.get((method, name), {}) for name in sets]
        if not any(cells):
            continue
        line: dict[str, Any] = {"method": LABELS[method]}
        for name, cell in zip(sets, cells, strict=True):
            values = np.array(list(cell.values()))
            line[name] = f"{values.mean():.1f} ± {values.std():.1f}" if values.size else None
        means = [np.mean(list(cell.values())) for cell in cells if cell]
        line["mean"] = f"{np.mean(means):.2f}" if all(cells) else None
        counts = sorted({len(cell) for cell in cells if cell})
        line["splits"] = "-".join(str(c) for c in dict.fromkeys((counts[0], counts[-1])))
        lines.append(line)
    return lines


def difference_lines(table: Table, sets: list[str]) -> list[dict[str, Any]]:
    """Return what the default gains on every other method."""
    lines = []
    for method in METHODS:
        found = None if method == REFERENCE else difference(table, REFERENCE, method, sets)
        if found is None:
            continue
        name, least = found.worst()
        lines.append(
            {
                "ratoon minus": LABELS[method],
                "points": f"{found.mean:+.2f}",
                "95 % over splits": _interval(found.mean, found.half_over_splits()),
                "95 % over sets": _interval(found.mean, found.half_over_sets()),
                "sets won": f"{sum(v > 0 for v in found.means.values())} of {len(sets)}",
                "worst set": f"{least:+.1f} ({name})",
                "splits": str(min(v.size for v in found.by_set.values())),
            }
        )
    return lines


def other_lines(rows: Rows, sets: list[str]) -> list[dict[str, Any]]:
    """Return means over sets of all other scores."""
    tables = {title: tabulated(rows, column) for title, column in OTHERS}
    lines = []
    for method in METHODS:
        line: dict[str, Any] = {"method": LABELS[method]}
        for title, table in tables.items():
            cells = [table.get((method, name), {}) for name in sets]
            means = [np.mean(list(cell.values())) for cell in cells if cell]
            line[title] = float(np.mean(means)) if all(cells) else None
        if any(line[title] is not None for title in tables):
            lines.append(line)
    return lines


def write_report(rows: Rows, out: Path) -> str:
    """Write Markdown, the CSV of the accuracy tables, and the picture; return the Markdown."""
    from quality.picture import draw

    table = tabulated(rows, "accuracy")
    text = [
        "# Predictive quality",
        "",
        INTRODUCTION,
    ]
    summary: list[dict[str, Any]] = []
    for title, sets in groups(rows).items():
        lines = accuracy_lines(table, sets)
        summary += [{"group": title, **line} for line in lines]
        text += ["", f"## {title}", "", markdown(lines)]
        differences = difference_lines(table, sets)
        if differences:
            text += ["", markdown(differences)]
        text += ["", "Means over these sets:", "", markdown(other_lines(rows, sets))]
        text += _ranks(table, sets)
        text += _of_the_paper(rows, sets)
    out.parent.mkdir(parents=True, exist_ok=True)
    picture = out.with_suffix(".png")
    if draw(table, groups(rows), picture):
        text += ["", f"![Difference to ridge, and ranks]({picture.name})"]
    out.write_text("\n".join(text) + "\n")
    _write_summary(out.with_name(out.stem + "-summary.csv"), summary)
    return out.read_text()


def _ranks(table: Table, sets: list[str]) -> list[str]:
    methods = comparable(table, list(METHODS), sets)
    if len(methods) < 2 or len(sets) < 2:
        return []
    ranks, critical = mean_ranks(table, methods, sets)
    ordered = sorted(ranks.items(), key=lambda item: item[1])
    listed = ", ".join(f"{LABELS[method]} {rank:.1f}" for method, rank in ordered)
    return ["", f"Mean ranks over {len(sets)} sets (critical difference {critical:.1f}): {listed}."]


def _of_the_paper(rows: Rows, sets: list[str]) -> list[str]:
    """Return how the paper's model fares rewired and left static, and its optimistic figures."""
    best, last = tabulated(rows, "best_on_test"), tabulated(rows, "accuracy")
    found = []
    for method in ("set", "fixprob"):
        cells = [best.get((method, name), {}) for name in sets]
        if all(cells):
            mean = np.mean([np.mean(list(cell.values())) for cell in cells])
            ends = [np.mean(list(last[method, name].values())) for name in sets]
            found.append(f"{LABELS[method]} {np.mean(ends):.1f}, best on test {mean:.1f}")
    against = [
        f"{LABELS[method]} minus FixProb: {gap.mean:+.2f}"
        f" ({_interval(gap.mean, gap.half_over_splits())} over splits; worst set"
        f" {gap.worst()[1]:+.1f}, {gap.worst()[0]})"
        for method in ("set_guided", "set_settles", "set")
        if (gap := difference(last, method, "fixprob", sets)) is not None
    ]
    text = "The same model, rewired or left static: " + "; ".join(against) + "."
    lines = ["", text] if against else []
    line = "Optimistic, for comparison with the paper (epoch chosen on test rows): "
    return lines + (["", line + "; ".join(found) + "."] if found else [])


def _interval(mean: float, half: float) -> str:
    return f"{mean - half:+.1f} to {mean + half:+.1f}" if np.isfinite(half) else "-"


def _write_summary(path: Path, lines: list[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(key for line in lines for key in line))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(lines)
