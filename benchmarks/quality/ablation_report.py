"""The ablation on paper: what every variant gains on what it is a variant of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from common.tables import markdown

from quality import larger
from quality.ablation import Fit, fits
from quality.compare import Difference, Table, difference, tabulated
from quality.rows import read_rows
from quality.sets import MANY, WIDE

INTRODUCTION = """\
# What every part of the default recipe is worth

Written by `python benchmarks/quality.py --ablation`, which goes on where it was.  One change at a
time, splits as in [the study](quality.md): accuracy in %, mean over the sets, and what the change
gains, split by split, in points, ± its standard error over splits; then every set.  Positive means
that the change is better than the default on these splits; nothing was chosen by that.
Log-loss: less is better.
"""

LARGER = """\
## Larger sets

Changes that are for text or for products of features: accuracy in %, mean over splits, and what
the change gains on the default, whose rows are those of [the study](quality.md).
"""


def larger_beside(path: Path) -> Path:
    """Return where rows of larger sets are."""
    return path.with_name(f"{path.stem}-larger.csv")


def write_ablation(path: Path, out: Path) -> str:
    """Write the table of the rows there are."""
    rows = read_rows(path)
    accuracy, losses = tabulated(rows, "accuracy"), tabulated(rows, "log_loss")
    present = {row["set"] for row in rows}
    sets = [name for name in WIDE if name in present] + sorted(present - set(WIDE))
    lines: list[dict[str, Any]] = []
    for fit in fits().values():
        lines += [
            _line(accuracy, losses, fit, variant, label, sets)
            for variant, label in fit.labels.items()
            if sets and all(accuracy.get((variant, name)) for name in sets)
        ]
    text = INTRODUCTION + "\n" + markdown(lines) + "\n"
    if more := read_rows(larger_beside(path)):
        study = read_rows(path.with_name("quality.csv"))
        more += [row | {"method": "default"} for row in study if row["method"] == "ratoon"]
        text += "\n" + LARGER + "\n" + markdown(_larger_lines(more)) + "\n"
    out.write_text(text)
    return out.read_text()


def _larger_lines(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a line per variant with rows; a set's cell is empty where there are none of it."""
    accuracy = tabulated(rows, "accuracy")
    labels = {"default": "**the default**"}
    for fit in larger.fits().values():
        labels |= fit.labels
    lines: list[dict[str, Any]] = []
    for variant, label in labels.items():
        cells = {name: accuracy[variant, name] for name in MANY if (variant, name) in accuracy}
        if not cells:
            continue
        line: dict[str, Any] = {"variant": label} | dict.fromkeys(MANY)
        line |= {name: f"{np.mean(list(cell.values())):.1f}" for name, cell in cells.items()}
        for name in MANY:
            gain = difference(accuracy, variant, "default", [name])
            has_gain = gain is not None and variant != "default"
            line[f"gain on {name}"] = _text(gain, 2) if has_gain else None
        lines.append(line | {"splits": str(min(map(len, cells.values())))})
    return lines


def _line(
    accuracy: Table, losses: Table, fit: Fit, variant: str, label: str, sets: list[str]
) -> dict[str, Any]:
    means = [np.mean(list(accuracy[variant, name].values())) for name in sets]
    line: dict[str, Any] = {
        "variant": label,
        "accuracy": f"{np.mean(means):.2f}",
        "gain": None,
        "log-loss": None,
        "splits": str(min(len(accuracy[variant, name]) for name in sets)),
    }
    line |= dict.fromkeys(sets)
    if variant == fit.base:
        cells = [losses.get((variant, name), {}) for name in sets]
        if all(cells):
            loss = np.mean([np.mean(list(cell.values())) for cell in cells])
            line["log-loss"] = f"{loss:.3f}"
        return line | {name: f"{mean:.1f}" for name, mean in zip(sets, means, strict=True)}
    gain = difference(accuracy, variant, fit.base, sets)
    loss_gain = difference(losses, variant, fit.base, sets)
    if gain is not None:
        line |= {"gain": _text(gain, 2)}
        line |= {name: _text(Difference({name: gain.by_set[name]})) for name in sets}
    if loss_gain is not None:
        line["log-loss"] = f"{loss_gain.mean:+.3f}"
    return line


def _text(found: Difference, digits: int = 1) -> str:
    return f"{found.mean:+.{digits}f} ± {found.half_over_splits() / 1.96:.{digits}f}"
