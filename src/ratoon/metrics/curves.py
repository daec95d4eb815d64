"""ROC, precision-recall and calibration curves, averaged over repeats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_curve

from ratoon.arrays import Array
from ratoon.metrics.intervals import Score, wilson
from ratoon.metrics.predictions import Predictions

GRID = 201
"""Points of a curve that is averaged over repeats."""

MOST_POINTS = 500
"""Points of a curve that is not averaged."""

FEWEST_IN_BIN = 8
"""Samples of a bin of the calibration, if there are enough for two bins."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Points of a curve of one class against the rest."""

    name: str
    x: Array
    y: Array
    area: float


@dataclass(frozen=True)
class Bin:
    """Predictions with similar probabilities: their mean, and how often they were right."""

    mean: float
    share: Score
    n: int


def shown_classes(predictions: Predictions) -> list[int]:
    """Return the classes whose curves are drawn: of two classes the second only."""
    present = np.bincount(predictions.truth, minlength=len(predictions.classes))
    if len(predictions.classes) == 2:
        return [1] if present.all() else []
    return [code for code, n in enumerate(present.tolist()) if 0 < n < predictions.n_samples]


def roc_curves(predictions: Predictions) -> list[Curve]:
    """Return the ROC curve of every class: false positive rate and true positive rate.

    Examples
    --------
    >>> p = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
    >>> curve = roc_curves(Predictions.of_classes([0, 1, 1], p, ("ill", "well")))[0]
    >>> curve.name, curve.area, curve.x.tolist(), curve.y.tolist()
    ('well', 1.0, [0.0, 0.0, 1.0], [0.0, 1.0, 1.0])
    """
    curves = []
    for code in shown_classes(predictions):
        points = []
        for scores in _scores(predictions, code):
            x, y, _ = roc_curve(predictions.truth == code, scores)
            points.append((x, y))
        x, y, mean_area = _averaged(points)
        curves.append(Curve(predictions.classes[code], x, y, mean_area))
    return curves


def _averaged(points: list[tuple[Array, Array]]) -> tuple[Array, Array, float]:
    area = float(np.mean([auc(x, y) for x, y in points]))
    if len(points) == 1:
        return *_without_repetition(*points[0]), area
    grid = np.linspace(0.0, 1.0, GRID)
    y = np.mean([_interpolated(grid, *one) for one in points], axis=0)
    return np.concatenate(([0.0], grid)), np.concatenate(([0.0], y)), area


def _interpolated(grid: Array, x: Array, y: Array) -> Array:
    """Return the curve at the grid; where it rises vertically, its upper end."""
    last = np.searchsorted(x, grid, side="right") - 1
    following = np.minimum(last + 1, x.size - 1)
    width = x[following] - x[last]
    part = np.divide(grid - x[last], width, out=np.zeros_like(grid), where=width > 0)
    return np.asarray(y[last] + part * (y[following] - y[last]))


def _without_repetition(x: Array, y: Array) -> tuple[Array, Array]:
    """Drop points inside straight vertical and horizontal pieces; keep at most `MOST_POINTS`."""
    if x.size < 3:
        return x, y
    inside = ((x[1:-1] == x[:-2]) & (x[1:-1] == x[2:])) | ((y[1:-1] == y[:-2]) & (y[1:-1] == y[2:]))
    kept = np.flatnonzero(np.concatenate(([True], ~inside, [True])))
    if kept.size > MOST_POINTS:  # finer than a screen
        kept = kept[np.unique(np.linspace(0, kept.size - 1, MOST_POINTS).astype(np.int64))]
    return x[kept], y[kept]


def precision_recall_curves(predictions: Predictions) -> list[Curve]:
    """Return the precision over the recall of every class; the area is the average precision.

    Examples
    --------
    >>> p = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]
    >>> curve = precision_recall_curves(Predictions.of_classes([0, 1, 1], p, ("ill", "well")))[0]
    >>> curve.area, curve.x.tolist(), curve.y.round(2).tolist()
    (1.0, [0.5, 1.0, 1.0], [1.0, 1.0, 0.67])
    """
    curves = []
    for code in shown_classes(predictions):
        is_class, points, areas = predictions.truth == code, [], []
        for scores in _scores(predictions, code):
            precision, recall, _ = precision_recall_curve(is_class, scores)
            # Without the last point, (0, 1), which no threshold has.
            points.append((recall[-2::-1], precision[-2::-1]))
            areas.append(average_precision_score(is_class, scores))
        if len(points) == 1:
            x, y = _without_repetition(*points[0])
        else:
            x = np.linspace(0.0, 1.0, GRID)
            y = np.mean([_step(x, *one) for one in points], axis=0)
        curves.append(Curve(predictions.classes[code], x, y, float(np.mean(areas))))
    return curves


def _step(grid: Array, recall: Array, precision: Array) -> Array:
    """Return the best precision that reaches each recall of the grid."""
    best = np.maximum.accumulate(precision[::-1])[::-1]
    first = np.searchsorted(recall, grid - 1e-12, side="left")
    return np.asarray(best[np.minimum(first, recall.size - 1)])


def calibration(predictions: Predictions, *, n_bins: int = 10) -> list[Bin]:
    """Return how often predictions of similar probability are right, in bins of equal counts.

    For two classes the probability is that of the second class; for more that of the predicted one.

    Examples
    --------
    >>> p = np.array([0.1, 0.2, 0.8, 0.9])
    >>> found = Predictions.of_classes([0, 0, 1, 1], np.c_[1 - p, p], ("ill", "well"))
    >>> [(round(one.mean, 2), one.share.value) for one in calibration(found, n_bins=2)]
    [(0.15, 0.0), (0.85, 1.0)]
    """
    assert predictions.probabilities is not None
    if len(predictions.classes) == 2:
        p = predictions.probabilities[:, :, 1]
        right = np.broadcast_to(predictions.truth == 1, p.shape)
    else:
        p, right = predictions.probabilities.max(axis=2), predictions.right()
    order = np.argsort(p, axis=None, kind="stable")
    values, hits = p.ravel()[order], right.ravel()[order].astype(np.float64)
    n_bins = max(min(n_bins, predictions.n_samples // FEWEST_IN_BIN), 2)
    # Predictions with the same probability belong to the same bin.
    edges = np.searchsorted(values, np.quantile(values, np.linspace(0, 1, n_bins + 1)[1:-1]))
    bounds = np.unique(np.concatenate(([0], edges, [values.size])))
    bins = []
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        n = (last - first) / predictions.n_repeats
        share = wilson(float(hits[first:last].mean()), n)
        bins.append(Bin(float(values[first:last].mean()), share, round(n)))
    return bins


def _scores(predictions: Predictions, code: int) -> Array:
    assert predictions.probabilities is not None
    return np.asarray(predictions.probabilities[:, :, code])
