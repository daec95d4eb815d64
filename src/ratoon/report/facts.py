"""Contents of a report, as data: everything but pictures."""

from __future__ import annotations

import platform
import time
import warnings
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from ratoon.datasets import Dataset
from ratoon.history import duration
from ratoon.report.confusion import ConfusionMatrixDisplay
from ratoon.samples.in_memory import wrap

_PACKAGES = ("ratoon", "numpy", "scipy", "scikit-learn")


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


def layer_rows(estimator: Any) -> list[dict[str, Any]]:
    """Return one row per layer: shape, connections, requested and achieved density."""
    rows = []
    for number, layer in enumerate(estimator.report_.layers, start=1):
        requested = layer.requested_density
        rows.append(
            {
                "layer": number,
                "shape": f"{layer.n_in:,} → {layer.n_out:,}",
                "connections": f"{layer.n_connections:,}",
                "requested": "given" if requested is None else f"{100 * requested:.3g} %",
                "achieved": f"{100 * layer.achieved_density:.3g} %",
                "rewired": f"{layer.rewired:,}",
                "megabytes": f"{layer.megabytes:.2f}",
            }
        )
    return rows


def timing_facts(estimator: Any, seconds_to_predict: float | None) -> list[tuple[str, str]]:
    """Return the times of training and prediction."""
    history = estimator.history_
    train = np.array(history.column("train_seconds"), dtype=np.float64)
    rewire = np.array(history.column("rewire_seconds"), dtype=np.float64)
    facts = []
    if estimator.solver_ == "closed form":
        facts.append(("fit in closed form", duration(float(train[0]))))
    elif train.size:
        facts += [
            ("epochs", f"{train.size:,}"),
            ("median per epoch", duration(float(np.median(train + rewire)))),
            ("rewiring per epoch (mean)", duration(float(rewire.mean()))),
            ("training in total", duration(float(train.sum() + rewire.sum()))),
        ]
    if seconds_to_predict is not None:
        facts.append(("prediction of these samples", duration(seconds_to_predict)))
    return facts


def evaluate(estimator: Any, data: Dataset | None) -> dict[str, Any]:
    """Return score, confusion matrix and prediction time; empty without labelled data."""
    if data is None or data.y is None:
        return {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        started = time.perf_counter()
        samples = data.X if data.groups is None else data  # a model may centre groups
        predicted = estimator.predict(samples)
        seconds = time.perf_counter() - started
        if data.class_names is None or not hasattr(estimator, "classes_"):
            return {"score": float(estimator.score(samples, data.y)), "seconds": seconds}
    # Labels may be numbers in the model and text in the data; compare them as text.
    truth, guess = np.asarray(data.labels, dtype=str), np.asarray(predicted).astype(str)
    names = [str(name) for name in estimator.classes_]
    unknown = sorted(set(truth.tolist()) - set(names))
    display = ConfusionMatrixDisplay.from_predictions(truth, guess, classes=names + unknown)
    return {"score": display.accuracy, "seconds": seconds, "confusion": display}


def matrix_rows(display: ConfusionMatrixDisplay) -> dict[str, Any]:
    """Return the confusion matrix as table cells: counts, percentages and colour levels.

    Examples
    --------
    >>> display = ConfusionMatrixDisplay.from_predictions(["a", "b", "b"], ["a", "b", "a"])
    >>> table = matrix_rows(display)
    >>> [[cell["count"] for cell in row["cells"]] for row in table["rows"]]
    [[1, 1], [0, 1]]
    >>> table["accuracy"]["right"], table["rows"][0]["precision"]["right"]
    ('66.7 %', '50.0 %')
    """
    matrix, total = display.matrix, max(int(display.matrix.sum()), 1)
    of_class = np.maximum(matrix.sum(axis=0), 1)
    small = len(display.class_names) <= 8
    rows = [
        {
            "name": name,
            "cells": [
                {
                    "count": int(matrix[i, j]),
                    "share": f"{100 * matrix[i, j] / total:.1f} %" if small else "",
                    "right": i == j,
                    # Four levels, each with a CSS class.
                    "tone": int(np.ceil(4 * matrix[i, j] / of_class[j])),
                }
                for j in range(len(display.class_names))
            ],
            "precision": _margin(display.precision[i]),
        }
        for i, name in enumerate(display.class_names)
    ]
    return {
        "names": list(display.class_names),
        "rows": rows,
        "recall": [_margin(value) for value in display.recall],
        "accuracy": _margin(display.accuracy),
    }


def _margin(value: float) -> dict[str, str]:
    if np.isnan(value):
        return {"right": "-", "wrong": ""}
    return {"right": f"{100 * value:.1f} %", "wrong": f"{100 * (1 - value):.1f} %"}


def ranked_features(
    estimator: Any, data: Dataset | None, top: int, selector: Any = None
) -> list[dict[str, Any]]:
    """Return the strongest features; with classes, also the class in which each is highest.

    A fitted selector replaces the ranking of the estimator and adds the stability of each feature.
    """
    ranks = estimator.feature_importances_ if selector is None else selector.strength_
    strength = np.asarray(ranks)
    names = getattr(estimator, "feature_names_in_", None)
    if names is None and data is not None:
        names = data.feature_names
    first = np.argsort(-strength, kind="stable")[:top]
    first = first[strength[first] > 0]
    highest = _highest_class(data, first)
    return [
        {
            "rank": place + 1,
            "name": f"feature {j}" if names is None else str(names[j]),
            "share": f"{100 * strength[j]:#.3g} %",
            "bar": f"{100 * strength[j] / strength[first[0]]:.1f}",
            "highest": highest[place] if highest else "",
            "stability": None if selector is None else f"{selector.selection_frequency_[j]:.0%}",
        }
        for place, j in enumerate(first)
    ]


def stability_facts(selector: Any) -> dict[str, Any] | None:
    """Return the number of networks of a selector and their stability index."""
    if selector is None:
        return None
    index = float(selector.stability_)
    return {
        "networks": len(selector.strengths_),
        "kept": int(selector.n_features_),
        "index": None if np.isnan(index) else f"{index:.2f}",
    }


def _highest_class(data: Dataset | None, features: Any) -> list[str]:
    if data is None or data.y is None or data.class_names is None or not len(features):
        return []
    dense = wrap(data.X[:, features]).dense()
    present = np.unique(data.y)
    means = np.stack([dense[data.y == code].mean(axis=0) for code in present])
    return [data.class_names[present[k]] for k in means.argmax(axis=0)]


def repeat_facts(estimator: Any, command: str | None) -> dict[str, Any]:
    """Return what is needed to reproduce the network."""
    versions = [f"Python {platform.python_version()}"]
    for name in _PACKAGES:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:  # pragma: no cover - package not installed
            continue
    defaults = type(estimator)().get_params(deep=False)
    given = estimator.get_params(deep=False)
    changed = ", ".join(
        f"{name}={value!r}"
        for name, value in given.items()
        if name != "callbacks" and repr(value) != repr(defaults[name])
    )
    seed = given.get("random_state")
    return {
        "command": command,
        "python": f"{type(estimator).__name__}({changed}).fit(X, y)",
        "versions": ", ".join(versions),
        "seed": "not set: another run gives a different network" if seed is None else str(seed),
        "machine": f"{platform.system()} on {platform.machine()}",
    }
