"""Tables of the benchmark, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from common.tables import markdown

from dynamic.cells import DENSE, Recipe
from dynamic.lines import Line
from dynamic.picture import NAMES

SETS = {
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "isolet": "Isolet",
    "coil20": "COIL20",
    "digits": "digits",
}


def points(value: float | None, digits: int = 2) -> str:
    """Return a fraction in per cent.

    >>> points(0.98765), points(None)
    ('98.77', '-')
    """
    return "-" if value is None else f"{100 * value:.{digits}f}"


def with_error(mean: float, error: float | None, *, sign: bool = False) -> str:
    """Return a mean with its standard error, in per cent.

    >>> with_error(0.012, 0.001, sign=True)
    '+1.20 ± 0.10'
    """
    text = f"{100 * mean:+.2f}" if sign else points(mean)
    return text if error is None else f"{text} ± {points(error)}"


def dense_of(lines: Sequence[Line], data: str, *, augmented: bool = False) -> Line | None:
    """Return the longest dense line of a set."""
    found = [
        line
        for line in lines
        if line.data == data
        and line.method == DENSE
        and (line.recipe.augment is not None) is augmented
    ]
    return max(found, key=lambda line: line.recipe.epochs, default=None)


def row_of(line: Line, static: Line | None, dense: Line | None) -> dict[str, Any]:
    """Return a line of the table of methods."""
    if static is None or line is static or line.method == DENSE:
        gain = "-"
    else:
        mean, error = line.gain_over(static)
        gain = with_error(mean, error, sign=True)
    faster = None if dense is None or line is dense else dense.seconds / line.seconds
    return {
        "method": NAMES[line.method],
        "recipe": line.recipe.words(),
        "seeds": line.n_seeds,
        "accuracy": with_error(line.accuracy, line.error),
        "- static": gain,
        "mean connections": round(line.connections),
        "CPU s": line.seconds,
        "dense / this": "-" if faster is None else f"{faster:.0f}",
        "MB": line.megabytes,
    }


def table_of(lines: Sequence[Line], data: str, density: float) -> str:
    """Return the methods of one set at one density, in the order of their accuracy."""
    dense = dense_of(lines, data)
    here = [
        line
        for line in lines
        if line.data == data and (line.density == density or line.method == DENSE)
    ]
    rows = []
    for line in sorted(here, key=lambda one: -one.accuracy):
        same = [
            other
            for other in here
            if other.method == "static" and other.recipe == line.recipe and other is not line
        ]
        rows.append(row_of(line, same[0] if same else None, dense))
    return markdown(rows)


def times(lines: Sequence[Line], data: str, target: float) -> list[dict[str, Any]]:
    """Return CPU seconds to an accuracy, for every line that reaches it."""
    rows = []
    for line in lines:
        if line.data != data or (seconds := line.time_to(target)) is None:
            continue
        rows.append(
            {
                "method": NAMES[line.method],
                "density": "100 %" if line.method == DENSE else f"{100 * line.density:g} %",
                "recipe": line.recipe.words(),
                "CPU s": seconds,
                "last epoch": points(line.accuracy),
            }
        )
    rows.sort(key=lambda row: float(row["CPU s"]))
    reference = [float(row["CPU s"]) for row in rows if row["method"] == NAMES[DENSE]]
    for row in rows:
        ratio = reference[0] / float(row["CPU s"]) if reference else None
        row["times faster than dense"] = "-" if ratio is None else f"{ratio:.1f}"
    return rows


def panels_of(lines: Sequence[Line], recipes: Mapping[str, Recipe]) -> dict[str, list[Line]]:
    """Return the panels of the picture: methods at 1 % and dense, on MNIST and CIFAR-10.

    Of the short trainings, those with the recipe of the set are shown.  Other sets take their
    place if there are neither.  A set without a dense line has no panel.
    """
    found = {}
    wanted = [name for name in ("mnist", "cifar10") if any(line.data == name for line in lines)]
    for data in wanted or sorted({line.data for line in lines}):
        shown = [
            line
            for line in lines
            if (line.data, line.density) == (data, 0.01)
            and (line.recipe == recipes[data] or line.recipe.epochs > recipes[data].epochs)
        ]
        dense = dense_of(lines, data)
        if shown and dense is not None:
            found[f"{SETS[data]}, 1 % of the connections"] = [*shown, dense]
    return found


SHOWN = {"mnist": "granet", "cifar10": "snfs"}
"""Method of the summary at 1 %, the best on validation rows; RigL where it is missing."""


def shown_of(lines: Sequence[Line], data: str, density: float, batch: int) -> Line | None:
    """Return the line of the summary: unchanged images, the longest, the minibatch of the set."""
    found = [
        line
        for line in lines
        if (line.data, line.density) == (data, density)
        and line.method in ("rigl", SHOWN[data])
        and line.recipe.augment is None
    ]

    def rank(line: Line) -> tuple[float, bool, bool]:
        recipe = line.recipe
        return recipe.epochs, recipe.batch == batch, line.method == SHOWN[data]

    return max(found, key=rank, default=None)


def summary(lines: Sequence[Line], recipes: Mapping[str, Recipe]) -> list[dict[str, Any]]:
    """Return accuracy, CPU seconds and megabytes of dense and of 1 % and 5 %, per set."""
    rows = []
    for data in (name for name in ("mnist", "cifar10") if any(one.data == name for one in lines)):
        batch = recipes[data].batch
        sparse = [shown_of(lines, data, density, batch) for density in (0.01, 0.05)]
        chosen = [dense_of(lines, data), *sparse]
        for line in chosen:
            if line is None:
                continue
            name = NAMES[line.method]
            if line.method != DENSE:
                name = f"ratoon, {100 * line.density:g} %, {name}"
            rows.append(
                {
                    "data": SETS[data],
                    "network": name,
                    "epochs": f"{line.recipe.epochs:g}",
                    "accuracy, %": points(line.accuracy),
                    "CPU s": line.seconds,
                    "MB": line.megabytes,
                }
            )
    return rows


def text_of(lines: Sequence[Line], recipes: Mapping[str, Recipe]) -> str:
    """Return all tables; ``recipes`` are those of short sparse trainings, by set."""
    found = summary(lines, recipes)
    parts = [f"**Summary**\n\n{markdown(found)}"] if found else []
    for data, name in SETS.items():
        here = [line for line in lines if line.data == data]
        for density in sorted({line.density for line in here if line.method != DENSE}):
            title = f"**{name}, {100 * density:g} %**"
            parts.append(f"{title}\n\n{table_of(lines, data, density)}")
        dense = dense_of(lines, data)
        if dense is not None and (rows := times(lines, data, dense.accuracy)):
            title = f"**{name}: CPU seconds to dense's accuracy, {points(dense.accuracy)} %**"
            parts.append(f"{title}\n\n{markdown(rows)}")
    return "\n\n".join(parts)


def choices_text(lines: Sequence[Line]) -> str:
    """Return what was tried on the validation part."""
    rows = [
        {
            "set": SETS[line.data],
            "method": NAMES[line.method],
            "recipe": line.recipe.words(),
            "validation": points(line.accuracy),
            "CPU s": line.seconds,
        }
        for line in lines
    ]
    return f"**Choices on the validation part**\n\n{markdown(rows)}" if rows else ""
