"""Facts about samples that several sections use."""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon.datasets import Dataset
from ratoon.samples.in_memory import wrap


def data_facts(data: Dataset) -> list[tuple[str, str]]:
    """Return a description of the data as pairs of label and text."""
    kind = "sparse" if data.is_sparse else "dense"
    facts = [
        ("samples", f"{data.n_samples:,}"),
        ("features", f"{data.n_features:,}"),
        ("values", f"{data.X.dtype}, {kind}, {data.n_bytes / 1e6:.1f} MB"),
    ]
    if data.class_names is not None:
        counts = ", ".join(f"{name}: {count}" for name, count in data.class_counts.items())
        facts.append(("classes", counts))
    elif data.is_survival and data.y is not None:
        facts.append(("events", f"{int(data.y['event'].sum())} of {data.n_samples}"))
    elif data.y is not None and data.y.size:
        facts.append(("target", f"{data.y.min():.4g} to {data.y.max():.4g}"))
    if data.source:
        facts.append(("source", data.source))
    if data.sha256:
        facts.append(("SHA-256", data.sha256))
    return [*facts, *(("note", note) for note in data.notes)]


def highest_class(data: Dataset | None, features: Any) -> list[str]:
    """Return for each feature the class in which its mean is highest; empty without classes."""
    if data is None or data.y is None or data.class_names is None or not len(features):
        return []
    dense = wrap(data.X[:, features]).dense()
    present = np.unique(data.y)
    means = np.stack([dense[data.y == code].mean(axis=0) for code in present])
    return [data.class_names[present[k]] for k in means.argmax(axis=0)]
