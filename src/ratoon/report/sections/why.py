"""Why these predictions: contributions of features to the outputs of a few samples.

Shown are misclassified samples and the surest prediction of every class; of numbers, the largest
errors and the largest and smallest predictions.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ratoon.report.context import CROSS_VALIDATED, ReportContext, sample_names
from ratoon.report.svg import plain

N_WRONG, N_OTHERS, N_FEATURES = 3, 3, 10


def build(context: ReportContext) -> dict[str, Any] | None:
    """Return the chosen samples with their largest contributions."""
    data = context.data
    if data is None or context.predictions is None or not data.n_samples:
        return None
    rows, reasons = _chosen(context)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        found = context.estimator.explain(data.X if data.groups is None else data, rows=rows)
    names = sample_names(data)
    return {
        "samples": [
            _bars(context, found, place, names[row], reason)
            for place, (row, reason) in enumerate(zip(rows, reasons, strict=True))
        ],
        "unit": found.unit,
        "is_classifier": context.is_classifier,
        "is_cross_validated": context.basis == CROSS_VALIDATED,
    }


def _chosen(context: ReportContext) -> tuple[list[int], list[str]]:
    predictions = context.predictions
    assert predictions is not None
    chosen: dict[int, str] = {}
    if not predictions.is_of_classes:
        predicted = (
            np.asarray(predictions.predicted).reshape(-1, predictions.n_samples).mean(axis=0)
        )
        if predictions.is_of_survival:
            order = np.argsort(-predicted, kind="stable").tolist()
            for row in (*order[:N_WRONG], *order[-N_WRONG:]):
                high = predicted[row] > np.median(predicted)
                chosen.setdefault(row, f"one of the {'highest' if high else 'lowest'} risks")
            return list(chosen), list(chosen.values())
        errors = predicted - predictions.truth
        for row in np.argsort(-np.abs(errors), kind="stable")[:N_WRONG].tolist():
            chosen.setdefault(row, f"error {errors[row]:+.3g}")
        for row, which in ((predicted.argmax(), "largest"), (predicted.argmin(), "smallest")):
            chosen.setdefault(int(row), f"{which} prediction")
        return list(chosen), list(chosen.values())
    p, guess = predictions.mean_probabilities(), predictions.consensus()
    truth, each = predictions.truth, np.arange(predictions.n_samples)
    certainty = p[each, guess]
    wrong = np.flatnonzero(guess != truth)
    where = " in cross-validation" if context.basis == CROSS_VALIDATED else ""
    for row in wrong[np.argsort(-certainty[wrong], kind="stable")][:N_WRONG].tolist():
        chosen[row] = f"misclassified{where}: true {predictions.classes[truth[row]]}"
    for code in range(len(predictions.classes)):
        right = np.flatnonzero((guess == code) & (truth == code))
        if right.size and len(chosen) < N_WRONG + N_OTHERS:
            row = int(right[certainty[right].argmax()])
            chosen[row] = f"surest {predictions.classes[code]}"
    if not chosen:
        chosen[0] = "first sample"
    return list(chosen), list(chosen.values())


def _bars(context: ReportContext, found: Any, place: int, name: str, reason: str) -> dict[str, Any]:
    tops = found.top(N_FEATURES, place)
    parts = found.of_sample(place)
    first = np.argsort(-np.abs(parts), kind="stable")[: len(tops)]
    rest = float(parts.sum() - parts[first].sum())
    largest = max([*(abs(part) for _, part, _ in tops), 1e-300])
    rows = [
        _bar(context.feature_name(int(j)), part, largest, plain(value))
        for j, (_, part, value) in zip(first, tops, strict=True)
    ]
    n_others = found.n_features - len(tops)
    if n_others > 0:
        # Without a bar: thousands of small contributions would dwarf the others.
        rows.append(_bar(f"{n_others:,} other features", rest, largest, "") | {"width": "0"})
    return {
        "name": name,
        "reason": reason,
        "target": str(found.targets[place]),
        "output": f"{found.outputs[place]:.3g}",
        "base": f"{found.base_values[place]:.3g}",
        "rows": rows,
    }


def _bar(name: str, part: float, largest: float, value: str) -> dict[str, str]:
    width = 100 * abs(part) / largest
    return {
        "name": name,
        "value": value,
        "part": f"{part:+.3g}",
        "x": f"{100 - width if part < 0 else 100:.1f}",
        "width": f"{width:.1f}",
        "css": "up" if part >= 0 else "down",
    }
