"""Features, classes and scales that deserve a second look before training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ratoon.datasets.dataset import Dataset

_SHOWN = 5
_COLUMNS_AT_ONCE = 4096


@dataclass(frozen=True)
class Finding:
    """One thing to look at: its kind, a sentence, and the features concerned, if any."""

    kind: str
    message: str
    features: tuple[int, ...] = ()


def find_suspicious(data: Dataset) -> Iterator[Finding]:
    """Yield what looks wrong, or likely to make a result look better than it is.

    Examples
    --------
    >>> data = Dataset(np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 1.0]]), np.array([0, 1, 1]),
    ...                class_names=("a", "b"))
    >>> for finding in find_suspicious(data):
    ...     print(finding.message)
    feature 0 counts the rows: a sample number, not a measurement
    feature 1 has one value per class: it may be the label itself
    class a has 1 sample: it cannot be both trained and tested on
    """
    constant: list[int] = []
    for first in range(0, data.n_features, _COLUMNS_AT_ONCE):
        block = _dense_columns(data, first)
        low, high = _extremes(block)
        constant.extend((first + np.flatnonzero(low == high)).tolist())
        varies = low != high
        yield from _row_counters(data, block, varies, first)
        yield from _labels_in_disguise(data, block, varies, first)
    if constant:
        names = _names(data, constant)
        yield Finding(
            "constant",
            f"{len(constant)} of {data.n_features} features have the same value in every sample:"
            f" {names}",
            tuple(constant),
        )
    yield from _scale(data)
    yield from _classes(data)


def _dense_columns(data: Dataset, first: int) -> Any:
    block = data.X[:, first : first + _COLUMNS_AT_ONCE]
    return block.toarray() if data.is_sparse else block


def _extremes(block: Any) -> tuple[Any, Any]:
    # Not `nanmin`, which warns about columns that are missing throughout.
    low = np.min(np.where(np.isnan(block), np.inf, block), axis=0, initial=np.inf)
    high = np.max(np.where(np.isnan(block), -np.inf, block), axis=0, initial=-np.inf)
    return np.minimum(low, high), high  # missing throughout counts as constant


def _row_counters(data: Dataset, block: Any, varies: Any, first: int) -> Iterator[Finding]:
    if data.n_samples < 3:
        return
    steps = np.diff(block, axis=0)
    for column in np.flatnonzero(varies & np.all(np.abs(steps) == 1, axis=0)):
        if np.all(steps[:, column] == steps[0, column]):
            feature = first + int(column)
            name = data.feature_label(feature)
            message = f"{name} counts the rows: a sample number, not a measurement"
            yield Finding("row number", message, (feature,))


def _labels_in_disguise(data: Dataset, block: Any, varies: Any, first: int) -> Iterator[Finding]:
    """Find features with one value per class, and not the same one in all classes."""
    if data.y is None or data.class_names is None or data.n_samples <= data.n_classes:
        return
    inside = varies.copy()
    centres = []
    for code in range(data.n_classes):
        members = block[data.y == code]
        if len(members):
            low, high = _extremes(members)
            inside &= low == high
            centres.append(low)
    centre = np.array(centres)
    for column in np.flatnonzero(inside):
        if np.unique(centre[:, column]).size == len(centres):
            feature = first + int(column)
            message = f"{data.feature_label(feature)} has one value per class: it may be the label"
            yield Finding("leak", message + " itself", (feature,))


def _scale(data: Dataset) -> Iterator[Finding]:
    values = data.X.data if data.is_sparse else data.X
    known = values[np.isfinite(values)]
    # Expression on the original scale runs to tens of thousands with a long tail.
    if known.size and not data.is_sparse and known.min() >= 0 and known.max() > 1000:
        middle = float(np.median(known))
        if known.max() > 50 * max(middle, 1e-12):
            message = (
                f"values run up to {known.max():.3g} with a median of {middle:.3g}: perhaps not on"
                " a log scale; consider log2(x + 1)"
            )
            yield Finding("scale", message)


def _classes(data: Dataset) -> Iterator[Finding]:
    counts = data.class_counts
    if not counts:
        return
    for name, count in counts.items():
        if count < 2:
            samples = f"{count} sample{'' if count == 1 else 's'}"
            message = f"class {name} has {samples}: it cannot be both trained and tested on"
            yield Finding("rare class", message)
    if len(counts) == 1:
        yield Finding("one class", f"all samples are of class {next(iter(counts))}")
    smallest, largest = min(counts.values()), max(counts.values())
    if smallest and largest >= 10 * smallest:
        message = (
            f"the largest class has {largest / smallest:.0f} times the samples of the smallest"
        )
        yield Finding("imbalance", message + "; compare with balanced accuracy")


def _names(data: Dataset, features: list[int]) -> str:
    shown = ", ".join(data.feature_label(j) for j in features[:_SHOWN])
    return shown + (", ..." if len(features) > _SHOWN else "")
