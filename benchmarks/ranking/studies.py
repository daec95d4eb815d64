"""The two studies: recovery of features that are known to matter, and accuracy of small panels."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from quality.sets import Array, load, split, standardised
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from ranking.methods import ranked
from ratoon.datasets import make_interactions, make_microarray

FIRST_SEED = 100
SIZES = (5, 10, 20, 50)
PANEL_SETS = (
    "colon",
    "lymphoma",
    "ALLAML",
    "TOX-171",
    "ALL_BCRABL",
    "arcene",
    "subramanian",
    "gordon",
    "christensen",
    "khan",
    "madelon",
)
ALL = "all features"

GENERATED: dict[str, Callable[[int], Any]] = {
    "clear, 2 classes": lambda s: make_microarray(100, 2000, 2, 40, effect=3.0, random_state=s),
    "faint, 2 classes": lambda s: make_microarray(100, 2000, 2, 40, effect=1.5, random_state=s),
    "5 classes": lambda s: make_microarray(150, 2000, 5, 50, effect=3.0, random_state=s),
    "products of 2": lambda s: make_interactions(1000, 100, 2, random_state=s),
}


def recovery(kind: str, number: int, method: str) -> list[dict[str, Any]]:
    """Precision at k on one generated set: the share of informative ones among the first k."""
    data, informative = GENERATED[kind](FIRST_SEED + number)
    order, seconds = _timed(method, data.X, data.y, number)
    first = order[: informative.size]
    value = float(np.isin(first, informative).mean())
    return [_row("recovery", kind, number, method, informative.size, value, seconds)]


def panels(name: str, number: int, method: str, folder: Path) -> list[dict[str, Any]]:
    """Test accuracy of a support vector machine that sees only the first k features.

    Features are ranked by the training rows alone.
    """
    parts = standardised(split(*_loaded(name, folder), number))
    if method == ALL:
        order, seconds, sizes = np.arange(parts.x.shape[1]), 0.0, (parts.x.shape[1],)
    else:
        order, seconds = _timed(method, parts.x, parts.y, number)
        sizes = tuple(k for k in SIZES if k <= order.size)
    rows = []
    for k in sizes:
        kept = order[:k]
        model = SVC().fit(parts.x[:, kept], parts.y)
        value = float(model.score(parts.x_test[:, kept], parts.y_test))
        rows.append(_row("panels", name, number, method, k, value, seconds))
    return rows


@cache
def _loaded(name: str, folder: Path) -> tuple[Array, Array]:
    return load(name, folder)


def _timed(method: str, x: Array, y: Array, seed: int) -> tuple[Array, float]:
    started = time.process_time()
    with threadpool_limits(limits=1):
        order = ranked(method, x, y, seed)
    return order, time.process_time() - started


def _row(
    study: str, data: str, number: int, method: str, k: int, value: float, seconds: float
) -> dict[str, Any]:
    return {
        "study": study,
        "data": data,
        "number": number,
        "method": method,
        "k": k,
        "value": round(value, 5),
        "cpu_seconds": round(seconds, 3),
    }
