"""Presets: the values of parameters left at None or ``"auto"``, by the shape of the data."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ratoon.committee.problem import MAX_SAMPLES, MIN_FEATURES
from ratoon.estimators.recipes import FULL_BATCH, recipes
from ratoon.estimators.recipes import Shape as Shape


def is_open(value: Any) -> bool:
    """Whether a parameter is left to the preset."""
    return value is None or (isinstance(value, str) and value == "auto")


def _default(shape: Shape) -> dict[str, Any]:
    """Return the values of the first recipe, or of one layer where samples are few."""
    is_wide = shape.n_samples <= MAX_SAMPLES and shape.n_features >= MIN_FEATURES
    if shape.n_samples <= FULL_BATCH or is_wide:
        return _one_layer(shape)
    first = recipes(shape)[0]
    return {**first.values, **first.alone}


def _one_layer(shape: Shape) -> dict[str, Any]:
    batch = shape.n_samples
    if batch > FULL_BATCH:
        batch = min(max(32, shape.n_samples // 50), 256)
    steps_per_epoch = math.ceil(shape.n_samples / batch)
    # The gradient vanishes once a few samples are fitted exactly.  Adam divides by its size and
    # would then follow rounding errors.
    smooth = steps_per_epoch == 1 and not shape.is_classifier
    return {
        "hidden_layer_sizes": (min(2000, max(100, shape.n_features // 4)),),
        # Ten connections per feature, until that would be more than a million.
        "epsilon": min(10.0, max(1.0, 1e6 / shape.n_features)),
        "evolution": "annealed_set",
        "solver": "sgd" if smooth else "adam",
        "learning_rate_init": 0.02 if smooth else 5e-3 if steps_per_epoch == 1 else 2e-3,
        "learning_rate": "cosine",
        "weight_decay": 0.0,
        "decay": "coupled",
        "batch_size": batch,
        "max_iter": min(200, max(30, math.ceil(1000 / steps_per_epoch))),
        "init": "he",
        "output_init": "zero",
        "start": "exact",
    }


def _fast(shape: Shape) -> dict[str, Any]:
    slow = _one_layer(shape)
    return {
        **slow,
        "hidden_layer_sizes": (min(500, max(50, shape.n_features // 8)),),
        "epsilon": 5.0,
        "max_iter": max(10, slow["max_iter"] // 4),
    }


def _large(shape: Shape) -> dict[str, Any]:
    return {
        **_one_layer(shape),
        "hidden_layer_sizes": (4000, 1000),
        "epsilon": 20.0,
        "learning_rate_init": 1e-3,
        "batch_size": min(shape.n_samples, 256),
        "max_iter": 50,
        "output_init": "he",
    }


def _paper(shape: Shape) -> dict[str, Any]:
    """Return the settings of the SET-MLP experiments on microarray data."""
    return {
        "hidden_layer_sizes": (max(1, round(0.8 * shape.n_features)),) * 2,
        "epsilon": 10.0,
        "evolution": "set",
        "solver": "sgd",
        "learning_rate_init": 0.01,
        "learning_rate": "constant",
        "weight_decay": 0.0002,
        "decay": "released",
        "batch_size": 5,
        "max_iter": 500,
        "init": "set",
        "output_init": "set",
        "start": "paper",
        "scale": "standard",
    }


PRESETS: dict[str | None, Callable[[Shape], dict[str, Any]]] = {
    None: _default,
    "paper": _paper,
    "fast": _fast,
    "large": _large,
}

ALWAYS = {
    "scale": "auto",
    "clip": 0.0,
    "dropout": 0.0,
    "label_smoothing": 0.0,
    "activation": "relu",
}
"""Values that are the same in every preset."""
