"""The page of a comparison of methods or strategies on the same splits."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ratoon.errors import InvalidInputError
from ratoon.report.page import page_text
from ratoon.report.svg import Chart, Html, shortened
from ratoon.storage.atomic import write_file

_ROW = 30.0


@dataclass(frozen=True)
class Compared:
    """The result of one method.

    Parameters
    ----------
    name : str
        Its name.
    accuracy : array-like
        Accuracy on every split.
    difference : tuple of float, optional
        Mean difference in accuracy to the reference, and its 95 % limits; limits may be NaN.
    p : float, optional
        Its p value.
    cells : tuple of str
        Further columns of the table.
    differences : array-like
        Difference on every split.
    """

    name: str
    accuracy: ArrayLike
    difference: tuple[float, float, float] | None = None
    p: float | None = None
    cells: tuple[str, ...] = ()
    differences: ArrayLike = field(default_factory=tuple)


def write_comparison(
    path: str | os.PathLike[str],
    methods: Sequence[Compared],
    *,
    title: str,
    reference: str,
    columns: Sequence[str] = (),
    facts: Sequence[tuple[str, str]] = (),
    notes: Sequence[str] = (),
    command: str | None = None,
) -> Path:
    """Write a comparison as one self-contained HTML file.

    Parameters
    ----------
    path : path
        The file to write, replaced as a whole or not at all.
    methods : sequence of Compared
        The reference among them.
    title : str
        Heading of the page.
    reference : str
        What differences are to, in words: "difference to static".
    columns : sequence of str
        Names of the further columns.
    facts : sequence of pairs of str
        Facts about data and settings, as label and text.
    notes : sequence of str
        Sentences below the table.
    command : str, optional
        The command that made the comparison.

    Returns
    -------
    Path
        Path of the page.
    """
    if not methods:
        raise InvalidInputError("there is nothing to compare; `methods` is empty.")
    ordered = sorted(methods, key=lambda one: -_mean(one))
    best = ordered[0]
    text = page_text(
        "comparison.html",
        title=title,
        best=best.name,
        best_accuracy=_percent(best.accuracy),
        n_splits=int(np.asarray(best.accuracy).size),
        accuracy=accuracy_chart(ordered),
        differences=difference_chart(ordered, reference),
        reference=reference,
        columns=list(columns),
        rows=[
            {
                "name": one.name,
                "accuracy": _percent(one.accuracy),
                "difference": _difference(one),
                "p": "" if one.difference is None else _p(one.p),
                "cells": one.cells,
            }
            for one in ordered
        ],
        facts=list(facts),
        notes=list(notes),
        command=command,
    )
    target = Path(path)
    write_file(target, text.encode("utf-8", "backslashreplace"))
    return target


def accuracy_chart(methods: Sequence[Compared]) -> Html:
    """Draw the accuracy on every split as a mark, and the mean as a dot."""
    each = [100 * np.asarray(one.accuracy, dtype=np.float64) for one in methods]
    each = [values[np.isfinite(values)] for values in each]
    everything = (
        np.concatenate([*each, [50.0]]) if not sum(map(len, each)) else np.concatenate(each)
    )
    chart = _chart("Accuracy of every method on every split.", methods, _around(everything))
    chart.axes("accuracy, %", "", y_ticks=[])
    _names(chart, methods)
    for row, values in enumerate(each):
        _marks(chart, row, values, "accuracy")
        if values.size:
            title = f"{methods[row].name}: mean {values.mean():.1f} %"
            mean = np.array([values.mean()])
            chart.dots(mean, np.array([row]), css=["dot c0"], titles=[title], radius=6)
    return chart.html()


def difference_chart(methods: Sequence[Compared], reference: str) -> Html | None:
    """Draw the mean differences with their 95 % intervals; None without any."""
    shown = [one for one in methods if one.difference is not None]
    if not shown:
        return None
    numbers = [[0.0]]
    for one in shown:
        assert one.difference is not None
        numbers += [[100 * x for x in one.difference if np.isfinite(x)]]
        numbers += [(100 * np.asarray(one.differences, dtype=np.float64)).tolist()]
    chart = _chart(f"Accuracy: {reference}.", shown, _around(np.concatenate(numbers)))
    chart.axes(f"{reference}, points of accuracy", "", y_ticks=[])
    _names(chart, shown)
    chart.line([0.0, 0.0], [-0.6, len(shown) - 0.4], "reference", title="no difference")
    for row, one in enumerate(shown):
        assert one.difference is not None
        mean, low, high = (100 * value for value in one.difference)
        _marks(chart, row, 100 * np.asarray(one.differences, dtype=np.float64), "difference")
        words = f"{one.name}: {mean:+.1f} points"
        if np.isfinite(low) and np.isfinite(high):
            chart.line([low, high], [row, row], "span c0")
            words += f", 95 % interval {low:+.1f} to {high:+.1f}"
        chart.dots(np.array([mean]), np.array([row]), css=["dot c0"], titles=[words], radius=6)
    return chart.html()


def _chart(description: str, methods: Sequence[Compared], x: tuple[float, float]) -> Chart:
    return Chart(
        description,
        x,
        (len(methods) - 0.4, -0.6),
        width=620,
        height=66 + _ROW * len(methods),
        margins=(170, 20, 10, 48),
        css="rows",
    )


def _names(chart: Chart, methods: Sequence[Compared]) -> None:
    for row, one in enumerate(methods):
        down = float(chart.at(chart.x[0], row)[1])
        last = chart.width - chart.margins[1]
        chart.parts.append(f'<path class="grid" d="M{chart.margins[0]} {down:.1f}H{last}"/>')
        chart.text(chart.margins[0] - 10, down + 4, shortened(one.name, 24), anchor="end")


def _marks(chart: Chart, row: int, values: Any, what: str) -> None:
    for number, value in enumerate(values.tolist()):
        chart.line(
            [value, value],
            [row - 0.22, row + 0.22],
            "split c1",
            title=f"split {number + 1}: {what} {value:.1f}",
        )


def _around(values: Any) -> tuple[float, float]:
    low, high = float(np.min(values)), float(np.max(values))
    slack = 0.06 * (high - low) or 1.0
    return low - slack, high + slack


def _mean(one: Compared) -> float:
    values = np.asarray(one.accuracy, dtype=np.float64)
    values = values[np.isfinite(values)]
    return float(values.mean()) if values.size else -np.inf


def _percent(accuracy: ArrayLike) -> str:
    values = 100 * np.asarray(accuracy, dtype=np.float64)
    values = values[np.isfinite(values)]
    return f"{values.mean():.1f} ± {values.std():.1f}" if values.size else "-"


def _difference(one: Compared) -> dict[str, str]:
    if one.difference is None:
        return {"value": "", "interval": ""}
    mean, low, high = (100 * value + 0.0 for value in one.difference)
    interval = f"{low:+.1f} to {high:+.1f}" if np.isfinite(low) and np.isfinite(high) else ""
    return {"value": "0.0" if abs(mean) < 0.05 else f"{mean:+.1f}", "interval": interval}


def _p(p: float | None) -> str:
    if p is None or not np.isfinite(p):
        return "-"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
