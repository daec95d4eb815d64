"""The picture of the study: difference to ridge on every set, and mean ranks."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

from quality.compare import Table, comparable, difference, mean_ranks
from quality.rows import METHODS

matplotlib.use("Agg")

import matplotlib.pyplot as plt

MARKERS = {"ratoon": "o", "f_ridge": "s", "l1": "v", "two_phase": "^", "recipe_g": "D"}


def draw(table: Table, groups: dict[str, list[str]], path: Path) -> bool:
    """Draw what can be drawn, and say whether anything could."""
    sets = [name for names in groups.values() for name in names if ("ridge", name) in table]
    if not sets:
        return False
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), width_ratios=(3, 2))
    for method, marker in MARKERS.items():
        for place, name in enumerate(sets):
            found = difference(table, method, "ridge", [name])
            if found is None:
                continue
            bar = found.half_over_splits() if method == "ratoon" else float("nan")
            left.errorbar(
                found.mean,
                place,
                xerr=None if np.isnan(bar) else bar,
                fmt=marker,
                color="C3" if method == "ratoon" else "0.55",
                markersize=7 if method == "ratoon" else 5,
                label=method if place == 0 else None,
            )
    left.axvline(0, color="k", linewidth=0.8)
    left.set_yticks(range(len(sets)), sets)
    left.invert_yaxis()
    left.set_xlabel("accuracy minus ridge, points (bar: 95 % over splits)")
    left.legend(fontsize=8)
    wide = next(iter(groups.values()))
    methods = comparable(table, list(METHODS), wide)
    if len(methods) > 1 and len(wide) > 1:
        ranks, critical = mean_ranks(table, methods, wide)
        ordered = sorted(ranks, key=lambda m: -ranks[m])
        colours = ["C3" if m == "ratoon" else "0.6" for m in ordered]
        right.barh(ordered, [ranks[m] for m in ordered], color=colours)
        best = min(ranks.values())
        right.axvline(best + critical, color="k", linestyle="--", linewidth=0.8)
        right.set_xlabel(f"mean rank, {len(wide)} sets (dashed: critical difference)")
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)
    return True
