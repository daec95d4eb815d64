"""What a report tells, gathered as plain data before anything is drawn or written."""

from __future__ import annotations

import platform
import time
import warnings
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import scipy.sparse

from ratoon.datasets import Dataset
from ratoon.history import duration
from ratoon.report.confusion import ConfusionMatrixDisplay

_PACKAGES = ("ratoon", "numpy", "scipy", "scikit-learn")


def data_facts(data: Dataset) -> list[tuple[str, str]]:
    """Return what is to be said about the data, as pairs of words and text."""
    kind = "sparse" if data.is_sparse else "dense"
    facts = [
        ("samples", f"{data.n_samples:,}"),
        ("features", f"{data.n_features:,}"),
        ("values", f"{data.X.dtype}, {kind}, {data.n_bytes / 1e6:.1f} MB"),
    ]
    if data.class_names is not None:
        counts = ", ".join(f"{name}: {count}" for name, count in data.class_counts.items())
        facts.append(("classes", counts))
    elif data.y is not None and data.y.size:
        facts.append(("target", f"{data.y.min():.4g} to {data.y.max():.4g}"))
    if data.source:
        facts.append(("source", data.source))
    if data.sha256:
        facts.append(("SHA-256", data.sha256))
    return [*facts, *(("note", note) for note in data.notes)]


def layer_rows(estimator: Any) -> list[dict[str, Any]]:
    """Return one row per layer: shape, connections, density asked for and achieved."""
    rows = []
    for number, layer in enumerate(estimator.report_.layers, start=1):
        asked = layer.requested_density
        rows.append(
            {
                "layer": number,
                "shape": f"{layer.n_in:,} → {layer.n_out:,}",
                "connections": f"{layer.n_connections:,}",
                "requested": "given" if asked is None else f"{100 * asked:.3g} %",
                "achieved": f"{100 * layer.achieved_density:.3g} %",
                "rewired": f"{layer.rewired:,}",
                "megabytes": f"{layer.megabytes:.2f}",
            }
        )
    return rows


def timing_facts(estimator: Any, seconds_to_predict: float | None) -> list[tuple[str, str]]:
    """Return how long things took."""
    history = estimator.history_
    train = np.array(history.column("train_seconds"), dtype=np.float64)
    rewire = np.array(history.column("rewire_seconds"), dtype=np.float64)
    facts = []
    if estimator.solver_ == "closed form":
        facts.append(("solving in closed form", duration(float(train[0]))))
    elif train.size:
        facts += [
            ("epochs", f"{train.size:,}"),
            ("an epoch (median)", duration(float(np.median(train + rewire)))),
            ("of it rewiring (mean)", duration(float(rewire.mean()))),
            ("training in all", duration(float(train.sum() + rewire.sum()))),
        ]
    if seconds_to_predict is not None:
        facts.append(("predicting these samples", duration(seconds_to_predict)))
    return facts


def evaluate(estimator: Any, data: Dataset | None) -> dict[str, Any]:
    """Return score, confusion matrix and the time it took; empty without labelled data."""
    if data is None or data.y is None:
        return {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        started = time.perf_counter()
        predicted = estimator.predict(data.X)
        seconds = time.perf_counter() - started
        if data.class_names is None or not hasattr(estimator, "classes_"):
            return {"score": float(estimator.score(data.X, data.y)), "seconds": seconds}
    # A model fitted on numbers meets labels read as text; as text they are the same.
    truth, guess = np.asarray(data.labels, dtype=str), np.asarray(predicted).astype(str)
    names = [str(name) for name in estimator.classes_]
    strangers = sorted(set(truth.tolist()) - set(names))
    display = ConfusionMatrixDisplay.from_predictions(truth, guess, classes=names + strangers)
    return {"score": display.accuracy, "seconds": seconds, "confusion": display}


def ranked_features(
    estimator: Any, data: Dataset | None, top: int, selector: Any = None
) -> list[dict[str, Any]]:
    """Return the strongest features; with classes, in which of them each is highest.

    With a fitted selector it is the selector that ranks, and stability is told.
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
    """Return how far the networks of a selector agree, and how many there are."""
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
    values = data.X[:, features]
    dense = values.toarray() if scipy.sparse.issparse(values) else np.asarray(values)
    present = np.unique(data.y)
    means = np.stack([dense[data.y == code].mean(axis=0) for code in present])
    return [data.class_names[present[k]] for k in means.argmax(axis=0)]


def repeat_facts(estimator: Any, command: str | None) -> dict[str, Any]:
    """Return what is needed to get the same network again."""
    versions = [f"Python {platform.python_version()}"]
    for name in _PACKAGES:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:  # pragma: no cover - a tree that was never installed
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
        "seed": "none was set: another run gives another network" if seed is None else str(seed),
        "machine": f"{platform.system()} on {platform.machine()}",
    }
