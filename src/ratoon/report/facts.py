"""Facts about samples that several sections use."""

from __future__ import annotations

from typing import Any

from ratoon.datasets import Dataset


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
    if data.groups is not None:
        of = f" of {data.group_column!r}" if data.group_column else ""
        facts.append(("groups", f"{len(set(data.groups))}{of}"))
    if data.source:
        facts.append(("source", data.source))
    if data.sha256:
        facts.append(("SHA-256", data.sha256))
    return [*facts, *(("note", note) for note in data.notes)]


def preparation_facts(estimator: Any) -> list[tuple[str, str]]:
    """Return how a fitted estimator prepares samples, as pairs of label and text."""
    preparation = estimator.preparation_
    done = [] if preparation is None else preparation.describe()
    return [("preparation", ", then ".join(done))] if done else []
