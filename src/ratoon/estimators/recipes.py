"""Recipes of the default: one table of rules, from the shape of the data to a network.

`SparseMLPClassifier()` and `SparseMLPRegressor()` train every recipe that `recipes` returns, average
a few networks of each and let held back rows weigh them (`ratoon.estimators.averaged`).  Where
parameters of a training are set, the first recipe has the values of the others.

``research/2026-11-default.md`` has the measurements; nothing was chosen on test rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ratoon.initialise import connections_wanted

FULL_BATCH = 64
"""Up to this many samples, a step takes all of them."""

FEW_FEATURES = 64
"""Up to this many features, a network can look at all of them."""

WORK = 4e10
"""Connections times samples times epochs that averaging may cost: about ten seconds of one core."""

SPARSE_COST = 40
"""Cost of a connection of a stored value, relative to one of dense samples."""

MOST_NETWORKS = 8
"""More networks of a kind were not better."""

BATCH = 32

STEPS, FEW_STEPS = 36_000, 1_500
"""Steps of a training; beyond that accuracy hardly rises, and the least."""

MOST_LINEAR = 20_000_000
"""Connections of a linear network; more features or outputs get a sparse one."""


@dataclass(frozen=True)
class Shape:
    """The shape of the data: all that defaults may depend on."""

    n_samples: int
    n_features: int
    n_outputs: int
    is_classifier: bool = True
    n_stored: int | None = None

    @property
    def per_row(self) -> float:
        """Values of a row that can differ from 0."""
        return self.n_features if self.n_stored is None else self.n_stored / self.n_samples


@dataclass(frozen=True, eq=False)
class Recipe:
    """A kind of network and how to train it: values of parameters that are left open."""

    name: str
    values: dict[str, Any]

    def work(self, shape: Shape) -> float:
        """Return about how many connections times samples times epochs a training needs."""
        widths = (shape.n_features, *self.values["hidden_layer_sizes"], shape.n_outputs)
        density = {name: self.values.get(name) for name in ("epsilon", "density")}
        first, *later = (connections_wanted(layer, **density) for layer in pairwise(widths))
        if shape.n_stored is not None:
            first = SPARSE_COST * first * shape.per_row / shape.n_features
        return (first + sum(later)) * shape.n_samples * self.values["max_iter"]


def recipes(shape: Shape) -> tuple[Recipe, ...]:
    """Return the recipes for data of this shape, the most general first.

    Examples
    --------
    >>> [recipe.name for recipe in recipes(Shape(60_000, 784, 10))]
    ['deep', 'selective', 'linear']
    >>> [recipe.name for recipe in recipes(Shape(5_000, 20, 1, False))]
    ['few features', 'linear']
    """
    if shape.n_samples <= FULL_BATCH:
        return (_few_samples(shape),)
    if shape.n_features <= FEW_FEATURES:
        return _few_features(shape), _linear(shape)
    if shape.n_stored is not None:
        return _sparse_input(shape), _linear(shape)
    return _deep(shape), _selective(shape), _linear(shape)


def n_networks(recipe: Recipe, shape: Shape) -> int:
    """Return how many networks of a recipe are averaged: as many as `WORK` allows.

    Examples
    --------
    >>> shapes = [Shape(n, 784, 10) for n in (1_000, 10_000, 60_000)]
    >>> [n_networks(recipes(shape)[0], shape) for shape in shapes]
    [8, 1, 1]
    """
    return max(1, min(MOST_NETWORKS, int(WORK / recipe.work(shape)), shape.n_samples // 10))


# ------------------------------------------------------------------------------------- the rules


def _few_samples(shape: Shape) -> Recipe:
    """One layer and full batches: a sample of weight k is the same as k copies of it."""
    # The gradient vanishes once a few samples are fitted exactly.  Adam divides by its size and
    # would then follow rounding errors.
    how = ("adam", 5e-3) if shape.is_classifier else ("sgd", 0.02)
    width = min(2000, max(100, shape.n_features // 4))
    return Recipe(
        "few samples",
        {
            **_training(*how, "cosine", shape.n_samples, 200),
            "hidden_layer_sizes": (width,),
            # Ten connections per feature, until that would be more than a million.
            "epsilon": min(10.0, max(1.0, 1e6 / shape.n_features)),
        },
    )


def _few_features(shape: Shape) -> Recipe:
    """One wide layer with Adam: friedman1 0.954 (two layers 0.951, the earlier default 0.913)."""
    values = _training("adam", 2e-3, "cosine", BATCH, _epochs(shape))
    return Recipe("few features", {**values, "hidden_layer_sizes": (200,), "epsilon": 10.0})


def _deep(shape: Shape) -> Recipe:
    """Three layers, RigL, dropout: MNIST 98.3 % in 21 CPU seconds (one layer 97.2)."""
    width = min(max(2 * shape.n_features, 200), 2000)
    return Recipe(
        "deep",
        {
            **_training("sgd", 0.025, "linear", BATCH, _epochs(shape)),
            "hidden_layer_sizes": (width,) * 3,
            "epsilon": 8.0,
            "evolution": "rigl",
            "dropout": 0.2,
            "weight_decay": 5e-4,
        },
    )


def _selective(shape: Shape) -> Recipe:
    """First connections by the squared F statistic: 2,000 features, 100 of them informative, 20
    classes: 81 % instead of 32.
    """
    width = min(max(2 * shape.n_features, 200), 2000)
    return Recipe(
        "selective",
        {
            **_training("sgd", 0.025, "linear", BATCH, _epochs(shape)),
            "hidden_layer_sizes": (width, width),
            "epsilon": 20.0,
            "evolution": "static",
            "start": "f_squared",
            "dropout": 0.2,
            "weight_decay": 5e-4,
        },
    )


def _sparse_input(shape: Shape) -> Recipe:
    """A narrow layer with SGD, whose steps cost nothing for features that a sample does not have."""
    return Recipe(
        "sparse input",
        {
            **_training("sgd", 0.1, "linear", BATCH, _epochs(shape, STEPS, 20)),
            "hidden_layer_sizes": (500,),
            "epsilon": min(20.0, max(1.0, 2e6 / shape.n_features)),
            "dropout": 0.2,
        },
    )


def _linear(shape: Shape) -> Recipe:
    """No hidden layer: 100,000 sparse features, 20 classes: 95.3 %, the network 88."""
    # A step must not overshoot: its length is the learning rate times the square of a row.
    rate = min(10.0 / shape.per_row, 0.05)
    connections = shape.n_features * shape.n_outputs
    return Recipe(
        "linear",
        {
            **_training("sgd", rate, "linear", BATCH, _epochs(shape, STEPS // 4, 20)),
            "hidden_layer_sizes": (),
            "density": min(1.0, MOST_LINEAR / connections),
            "evolution": "static",
        },
    )


def _training(solver: str, rate: float, schedule: str, batch: int, n_epochs: int) -> dict[str, Any]:
    return {
        "solver": solver,
        "learning_rate_init": rate,
        "learning_rate": schedule,
        "batch_size": batch,
        "max_iter": n_epochs,
        "weight_decay": 0.0,
        "decay": "coupled",
        "evolution": "annealed_set",
        "init": "he",
        "output_init": "zero",
        "start": "exact",
    }


def _epochs(shape: Shape, steps: int = STEPS, most: int = 60) -> int:
    """Return the epochs of about so many steps: 4 to 60, more where these are few steps."""
    per_epoch = math.ceil(shape.n_samples / BATCH)
    most = max(most, min(300, math.ceil(FEW_STEPS / per_epoch)))
    return max(4, min(most, steps // per_epoch))
