"""Report of the forms of SET: the gain of each over the static network."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from common.tables import markdown

from quality.compare import Difference, Table, difference, tabulated
from quality.forms import FORMS
from quality.guided_forms import FIRST_FRESH, read_forms
from quality.sets import WIDE

INTRODUCTION = """\
# Forms of SET in the paper's model

Written by `python benchmarks/quality.py --guided-forms`, which is resumable.  What a form
gains on the same network left static, split by split, in points of accuracy at the last epoch, ±
its standard error over splits; the largest first.  Splits 100 and up; `GuidedSET` was chosen on
the first nine of them, so gains from 109 on are reported separately.

Names: what inputs of the first layer are drawn by; first weights of new connections there, *zero*,
or *init* as at the start; when to rewire; how much, which goes to 0 along a cosine.  Layers behind
grow anywhere from 0 at the same moments, with the same zeta unless said otherwise and with 0.3
where rewiring is after epochs; "anywhere" is SET, all layers alike.  A set on which a training
diverged is left out of the mean, and the number of those trainings is given instead.
"""


def write_forms(path: Path, out: Path) -> str:
    """Write the table of the rows there are."""
    rows = read_forms(path)
    accuracy = tabulated(rows, "accuracy")
    fresh = tabulated([row for row in rows if row["split"] >= FIRST_FRESH], "accuracy")
    present = {row["set"] for row in rows}
    sets = [name for name in WIDE if name in present] + sorted(present - set(WIDE))
    diverged: dict[tuple[str, str], int] = {}
    for row in rows:
        if math.isnan(row["accuracy"]):
            key = row["method"], row["set"]
            diverged[key] = diverged.get(key, 0) + 1
    found = []
    for form in FORMS[1:]:
        its = [name for name in sets if (form, name) not in diverged]
        gain = difference(accuracy, form, "static", its)
        if gain is not None:
            later = difference(fresh, form, "static", its)
            found.append((gain.mean, _line(form, gain, later, sets, diverged)))
    found.sort(key=lambda item: -item[0])
    parts = [INTRODUCTION, markdown([_static(accuracy, sets), *(line for _, line in found)]), ""]
    out.write_text("\n".join(parts))
    return out.read_text()


def _static(accuracy: Table, sets: list[str]) -> dict[str, Any]:
    cells = {name: list(accuracy["static", name].values()) for name in sets}
    means = {name: sum(values) / len(values) for name, values in cells.items()}
    return {
        "form": "static: accuracy",
        "splits": _range([len(values) for values in cells.values()]),
        "mean": f"{sum(means.values()) / len(means):.1f}",
        f"from {FIRST_FRESH} on": None,
        **{name: f"{mean:.1f}" for name, mean in means.items()},
    }


def _line(
    form: str,
    gain: Difference,
    later: Difference | None,
    sets: list[str],
    diverged: dict[tuple[str, str], int],
) -> dict[str, Any]:
    line = {
        "form": form,
        "splits": _range([values.size for values in gain.by_set.values()]),
        "mean": _text(gain),
        f"from {FIRST_FRESH} on": None if later is None else _text(later),
    }
    for name in sets:
        if name in gain.by_set:
            line[name] = _text(Difference({name: gain.by_set[name]}))
        else:
            line[name] = f"{diverged.get((form, name), 0)} diverged"
    return line


def _range(counts: list[int]) -> str:
    return f"{min(counts)}-{max(counts)}" if min(counts) < max(counts) else str(counts[0])


def _text(found: Difference) -> str:
    return f"{found.mean:+.1f} ± {found.half_over_splits() / 1.96:.1f}"
