"""`examine`: what to check in a file or a data set before training."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ratoon.datasets.dataset import Dataset
from ratoon.datasets.read import read
from ratoon.datasets.tables.orientation import repeated

_SHOWN = 5


@dataclass(frozen=True)
class Examination:
    """The result of `examine`: properties of a data set, and findings to check.

    Parameters
    ----------
    source, sha256 : str or None
        Path or generator call, and digest of the file.
    n_samples, n_features : int
        Shape of X.
    dtype, storage : str
        ``"float32"``, ``"dense"`` or ``"sparse"``.
    n_bytes : int
        Memory of X.
    density : float
        Fraction of the values that are not zero.
    value_range : (float, float) or None
        Smallest and largest value.
    classes : dict of str to int
        Number of samples per class; empty without classes.
    target_range : (float, float) or None
        Smallest and largest value of a continuous target.
    n_missing : int
        Number of missing values.
    n_features_missing, n_samples_missing : int
        Number of features and of samples with a missing value.
    duplicate_sample_names, duplicate_feature_names : dict of str to int
        Names that occur more than once, and how often.
    duplicate_samples : list of list of str
        Groups of samples with identical values.
    n_duplicate_features : int
        Features identical to an earlier feature.
    findings : tuple of Finding
        Possible problems.
    notes : tuple of str
        Decisions of the reader.
    """

    source: str
    sha256: str | None
    n_samples: int
    n_features: int
    dtype: str
    storage: str
    n_bytes: int
    density: float
    value_range: tuple[float, float] | None
    classes: dict[str, int]
    target_range: tuple[float, float] | None
    n_missing: int
    n_features_missing: int
    n_samples_missing: int
    duplicate_sample_names: dict[str, int]
    duplicate_feature_names: dict[str, int]
    duplicate_samples: list[list[str]]
    n_duplicate_features: int
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as lists, dictionaries and numbers."""
        return asdict(self)

    def to_json(self) -> str:
        """Return the fields as JSON."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def to_text(self) -> str:
        """Return a report as text."""
        low, high = self.value_range or (0.0, 0.0)
        lines = [
            f"source      {self.source}",
            f"samples     {self.n_samples}",
            f"features    {self.n_features}",
            f"values      {self.dtype}, {self.storage}, {self.n_bytes / 1e6:.1f} MB,"
            f" {low:.4g} to {high:.4g}, {100 * self.density:.3g}% not zero",
        ]
        if self.classes:
            lines.append(f"classes     {len(self.classes)}")
            lines += [
                f"            {name}: {count} ({100 * count / self.n_samples:.1f}%)"
                for name, count in self.classes.items()
            ]
        elif self.target_range:
            lines.append("target      {:.4g} to {:.4g}".format(*self.target_range))
        elif not any(note.startswith("survival: ") for note in self.notes):
            lines.append("labels      none")
        lines.append(
            f"missing     {_count(self.n_missing, 'value')} in"
            f" {_count(self.n_features_missing, 'feature')} and"
            f" {_count(self.n_samples_missing, 'sample')}"
            if self.n_missing
            else "missing     none"
        )
        lines.append(f"duplicates  {self._duplicates()}")
        lines += [f"check       {finding.message}" for finding in self.findings]
        lines += [f"note        {note}" for note in self.notes]
        return "\n".join(lines)

    def _duplicates(self) -> str:
        parts = []
        for what, names in (
            ("sample names", self.duplicate_sample_names),
            ("feature names", self.duplicate_feature_names),
        ):
            if names:
                parts.append(f"{len(names)} {what} ({', '.join(list(names)[:_SHOWN])})")
        if self.duplicate_samples:
            groups = ["=".join(group[:_SHOWN]) for group in self.duplicate_samples[:_SHOWN]]
            parts.append(f"{len(self.duplicate_samples)} groups of samples ({', '.join(groups)})")
        if self.n_duplicate_features:
            parts.append(f"{self.n_duplicate_features} features identical to an earlier one")
        return "; ".join(parts) or "none"

    def __str__(self) -> str:
        return self.to_text()


def examine(source: Dataset | str | os.PathLike[str], **options: Any) -> Examination:
    """Report the properties of a file or a data set, and possible problems.

    Parameters
    ----------
    source : Dataset or path
        A path is read with `read`; missing values and repeated names are reported, not errors.
    **options
        Arguments of `read`.

    Returns
    -------
    Examination

    Examples
    --------
    >>> data = Dataset(np.array([[1.0, 5.0], [2.0, 5.0], [np.nan, 5.0]]))
    >>> examination = examine(data)
    >>> examination.n_missing, examination.findings[0].message
    (1, '1 of 2 features have the same value in every sample: feature 1')
    """
    if not isinstance(source, Dataset):
        options = {"missing": "keep", "duplicates": "keep", **options}
        source = read(source, **options)
    data = source
    values = data.X.data if data.is_sparse else data.X
    absent = np.isnan(values)
    by_feature, by_sample = _missing_places(data, absent)
    known = values[~absent]
    n_values = max(1, data.n_samples * data.n_features)
    low_high = (float(known.min()), float(known.max())) if known.size else None
    if low_high and data.is_sparse and values.size < n_values:
        low_high = (min(0.0, low_high[0]), max(0.0, low_high[1]))
    target = None
    if data.y is not None and data.class_names is None and data.y.size and not data.is_survival:
        target = (float(data.y.min()), float(data.y.max()))
    equal_samples, n_equal_features = _equal_rows(data.X), 0
    names = data.sample_names or tuple(str(i + 1) for i in range(data.n_samples))
    for group in _equal_rows(data.X.T.tocsr() if data.is_sparse else data.X.T):
        n_equal_features += len(group) - 1
    return Examination(
        source=data.source,
        sha256=data.sha256,
        n_samples=data.n_samples,
        n_features=data.n_features,
        dtype=str(data.X.dtype),
        storage="sparse" if data.is_sparse else "dense",
        n_bytes=data.n_bytes,
        density=float(np.count_nonzero(values) / n_values),
        value_range=low_high,
        classes=data.class_counts,
        target_range=target,
        n_missing=int(absent.sum()),
        n_features_missing=by_feature,
        n_samples_missing=by_sample,
        duplicate_sample_names=_counts(data.sample_names),
        duplicate_feature_names=_counts(data.feature_names),
        duplicate_samples=[[names[row] for row in group] for group in equal_samples],
        n_duplicate_features=n_equal_features,
        findings=tuple(find_suspicious(replace(data, y=None) if data.is_survival else data)),
        notes=data.notes,
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _counts(names: tuple[str, ...] | None) -> dict[str, int]:
    return {name: len(places) for name, places in repeated(names or ()).items()}


def _missing_places(data: Dataset, absent: Any) -> tuple[int, int]:
    if not absent.any():
        return 0, 0
    if data.is_sparse:
        rows = np.repeat(np.arange(data.n_samples), np.diff(data.X.indptr))
        return np.unique(data.X.indices[absent]).size, np.unique(rows[absent]).size
    return int(absent.any(axis=0).sum()), int(absent.any(axis=1).sum())


def _equal_rows(X: Any) -> list[list[int]]:
    """Return groups of bitwise identical rows."""
    seen: dict[bytes, list[int]] = {}
    is_sparse = sp.issparse(X)
    for row in range(X.shape[0]):
        if is_sparse:
            slots = slice(X.indptr[row], X.indptr[row + 1])
            key = X.indices[slots].tobytes() + X.data[slots].tobytes()
        else:
            key = X[row].tobytes()
        seen.setdefault(key, []).append(row)
    return [rows for rows in seen.values() if len(rows) > 1]


_COLUMNS_AT_ONCE = 4096


@dataclass(frozen=True)
class Finding:
    """One possible problem: its kind, a message, and the features concerned, if any."""

    kind: str
    message: str
    features: tuple[int, ...] = ()


def find_suspicious(data: Dataset) -> Iterator[Finding]:
    """Yield possible problems, including those that make a result look better than it is.

    Examples
    --------
    >>> data = Dataset(np.array([[1.0, 0.0], [2.0, 1.0], [3.0, 1.0]]), np.array([0, 1, 1]),
    ...                class_names=("a", "b"))
    >>> for finding in find_suspicious(data):
    ...     print(finding.message)
    feature 0 counts the samples: it is a row number, not a measurement
    feature 1 has one value per class: it may be the label itself
    class a has 1 sample: it cannot be in both the training and the test set
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
    if data.is_sparse:
        return block.toarray()
    return block.astype(np.float32) if block.dtype == np.uint8 else block


def _extremes(block: Any) -> tuple[Any, Any]:
    # Not `nanmin`, which warns about columns without any value.
    low = np.min(np.where(np.isnan(block), np.inf, block), axis=0, initial=np.inf)
    high = np.max(np.where(np.isnan(block), -np.inf, block), axis=0, initial=-np.inf)
    return np.minimum(low, high), high  # a column without any value counts as constant


def _row_counters(data: Dataset, block: Any, varies: Any, first: int) -> Iterator[Finding]:
    if data.n_samples < 3:
        return
    steps = np.diff(block, axis=0)
    for column in np.flatnonzero(varies & np.all(np.abs(steps) == 1, axis=0)):
        if np.all(steps[:, column] == steps[0, column]):
            feature = first + int(column)
            name = data.feature_label(feature)
            message = f"{name} counts the samples: it is a row number, not a measurement"
            yield Finding("row number", message, (feature,))


def _labels_in_disguise(data: Dataset, block: Any, varies: Any, first: int) -> Iterator[Finding]:
    """Find features that are constant within each class and differ between classes."""
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
    # Expression on the original scale reaches tens of thousands, with a long tail.
    if known.size and not data.is_sparse and known.min() >= 0 and known.max() > 1000:
        middle = float(np.median(known))
        if known.max() > 50 * max(middle, 1e-12):
            message = (
                f"the largest value is {known.max():.3g} and the median {middle:.3g}: the values"
                " may not be on a log scale; consider log2(x + 1)"
            )
            yield Finding("scale", message)


def _classes(data: Dataset) -> Iterator[Finding]:
    counts = data.class_counts
    if not counts:
        return
    for name, count in counts.items():
        if count < 2:
            samples = _count(count, "sample")
            message = (
                f"class {name} has {samples}: it cannot be in both the training and the test set"
            )
            yield Finding("rare class", message)
    if len(counts) == 1:
        yield Finding("one class", f"all samples are of class {next(iter(counts))}")
    smallest, largest = min(counts.values()), max(counts.values())
    if smallest and largest >= 10 * smallest:
        message = (
            f"the largest class has {largest / smallest:.0f} times as many samples as the smallest"
        )
        yield Finding("imbalance", message + "; use balanced accuracy to compare models")


def _names(data: Dataset, features: list[int]) -> str:
    shown = ", ".join(data.feature_label(j) for j in features[:_SHOWN])
    return shown + (", ..." if len(features) > _SHOWN else "")
