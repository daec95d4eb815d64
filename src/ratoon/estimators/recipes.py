"""Recipes of the default: one table of rules, from the shape of the data to a network.

`SparseMLPClassifier()` and `SparseMLPRegressor()` train networks by the recipes that `recipes`
returns, and average them with weights chosen on held back rows (`ratoon.estimators.averaged`).
Where parameters of a training are set, the first recipe has the values of the others.

``research/2026-11-default.md`` has the measurements; nothing was chosen on test rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from ratoon.initialise import connections_wanted

FULL_BATCH = 64
"""Up to this many samples, a step takes all of them."""

FEW_FEATURES, SOME_FEATURES = 64, 300
"""Up to this many features, a network can look at all of them; and Adam is worth its time."""

WORK = 8e10
"""Connections times samples times epochs that averaging may cost: about 20 seconds of one core."""

SPARSE_COST = 80
"""Cost of a connection of a stored value, relative to one of dense samples."""

MOST_NETWORKS, MOST_STEPS = 8, 200_000
"""More networks of a kind were not better; with many steps each, fewer are as good."""

BATCH = 32

STEPS, FEW_STEPS = 48_000, 700
"""Steps of a training; beyond that accuracy hardly rises, and the least."""

MANY_SAMPLES = 20_000
"""Above this number of samples, half the dropout is better in the epochs there are."""

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
    alone: dict[str, Any] = field(default_factory=dict)
    """Better values for one network that trains with all rows, to its last epoch."""

    def steps(self, shape: Shape) -> int:
        """Return how many steps a training has."""
        per_epoch = math.ceil(shape.n_samples / int(self.values["batch_size"]))
        return per_epoch * int(self.values["max_iter"])

    def work(self, shape: Shape) -> float:
        """Return about how many connections times samples times epochs a training needs."""
        widths = (shape.n_features, *self.values["hidden_layer_sizes"], shape.n_outputs)
        density = {name: self.values.get(name) for name in ("epsilon", "density")}
        layers = [float(connections_wanted(layer, **density)) for layer in pairwise(widths)]
        if shape.n_stored is not None:
            layers[0] *= SPARSE_COST * shape.per_row / shape.n_features
        return sum(layers) * shape.n_samples * int(self.values["max_iter"])


def recipes(shape: Shape) -> tuple[Recipe, ...]:
    """Return the recipes for data of this shape, the most general first.

    Examples
    --------
    >>> [recipe.name for recipe in recipes(Shape(60_000, 784, 10))]
    ['deep', 'selective', 'linear']
    >>> [recipe.name for recipe in recipes(Shape(5_000, 20, 1, False))]
    ['few features', 'two layers', 'linear']
    >>> [recipe.name for recipe in recipes(Shape(5_000, 80, 1, False))]
    ['deep', 'guided', 'guided, two layers', 'linear']
    """
    if shape.n_features <= FEW_FEATURES:
        return _few_features(shape), _two_layers(shape), _linear(shape)
    if shape.n_stored is not None:
        return _sparse_input(shape), _linear(shape)
    if shape.n_features <= SOME_FEATURES:
        return _deep(shape), *_guided(shape), _linear(shape)
    return _deep(shape), _selective(shape), _linear(shape)


def n_networks(recipe: Recipe, shape: Shape) -> int:
    """Return how many networks of a recipe are averaged: as many as `WORK` allows.

    20,000 x 40, five classes, validation rows: four networks of 48,000 steps 86.4 %, eight of
    24,000 steps 85.3.

    Examples
    --------
    >>> shapes = [Shape(n, 784, 10) for n in (1_000, 10_000, 60_000)]
    >>> [n_networks(recipes(shape)[0], shape) for shape in shapes]
    [8, 1, 1]
    """
    most = min(MOST_NETWORKS, MOST_STEPS // recipe.steps(shape), shape.n_samples // 10)
    return max(1, min(most, int(WORK / recipe.work(shape))))


def work_of_average(shape: Shape) -> float:
    """Return about how many connections times samples times epochs a default fit needs."""
    each = [recipe.work(shape) for recipe in recipes(shape)]
    return max(each) if sum(each) > WORK else min(WORK, MOST_NETWORKS * sum(each))


# ------------------------------------------------------------------------------------- the rules


def _few_features(shape: Shape) -> Recipe:
    """Return one wide layer with Adam, for smooth functions.

    friedman1, 2,000 x 20, validation rows: R2 0.945; learning rate 0.002 0.932; and 60 instead of
    200 epochs 0.906.  Three classes inside each other, 1,000 x 10: 87.4 %, 86.6, 79.0.  One network
    that holds no rows back would memorise: steps, 1,500 x 12, 0.582 instead of 0.611.
    """
    values = _training("adam", 5e-3, "cosine", BATCH, _epochs(shape, most=200))
    values |= {"hidden_layer_sizes": (200,), "epsilon": 10.0}
    alone = {"learning_rate_init": 2e-3, "max_iter": _epochs(shape)}
    return Recipe("few features", values, alone)


def _two_layers(shape: Shape) -> Recipe:
    """Return two narrow sparse layers, for steps and interactions.

    Sum of steps, 1,500 x 12, validation rows: one layer R2 0.667, averaged with this one 0.855;
    three times the connections 0.804.  Four clustered classes, 3,000 x 30: 74.9 %, 77.0; without
    dropout 75.7.
    """
    values = _training("adam", 5e-3, "cosine", BATCH, _epochs(shape, most=100))
    density = max(0.15, min(1.0, 3 / shape.n_features))
    sizes = {"hidden_layer_sizes": (100, 100), "density": density, "dropout": 0.05}
    return Recipe("two layers", {**values, **sizes})


def _guided(shape: Shape) -> tuple[Recipe, Recipe]:
    """Return the networks for few features, with first connections drawn by the F statistic.

    friedman1, 2,000 x 80, validation rows: R2 0.934; at random 0.909; deep and selective 0.782.
    Five classes, 2,000 x 80: 81.0 %; at random 66.3; deep and selective 79.9.
    """
    one, two = _few_features(shape), _two_layers(shape)
    of_one = {"start": "f_squared", "evolution": "static"}
    of_two = {"start": "f", "hidden_layer_sizes": (200, 200)}
    return (
        Recipe("guided", {**one.values, **of_one}),
        Recipe("guided, two layers", {**two.values, **of_two}),
    )


def _deep(shape: Shape) -> Recipe:
    """Return three layers with RigL and dropout.

    MNIST, validation rows: 98.2 % after 26 epochs, with twice the dropout 98.1.  3,000 rows: three
    layers of 1,568 neurons 92.5, one 88.8.
    """
    width = min(max(2 * shape.n_features, 200), 2000)
    return Recipe(
        "deep",
        {
            **_training("sgd", 0.025, "linear", BATCH, _epochs(shape)),
            "hidden_layer_sizes": (width,) * 3,
            "epsilon": 8.0,
            "evolution": "rigl",
            "dropout": 0.2 if shape.n_samples <= MANY_SAMPLES else 0.1,
            "weight_decay": 5e-4,
        },
    )


def _selective(shape: Shape) -> Recipe:
    """Return two layers whose first connections are drawn by the squared F statistic.

    2,000 features, 100 of them informative, 20 classes: 88 %; three layers with random first
    connections 27.  Rewiring by gradient loses that start: 65 instead of 74 with fewer connections.
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
    """Return a narrow layer with SGD, whose steps skip the features that a sample does not have."""
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
    """Return no hidden layer.

    100,000 sparse features, 20 classes, 5 % label noise: 95.4 %, one hidden layer 88.
    """
    # A step must not overshoot: its length is the learning rate times the square of a row.
    rate = min(10.0 / shape.per_row, 0.05)
    connections = shape.n_features * shape.n_outputs
    return Recipe(
        "linear",
        {
            **_training("sgd", rate, "linear", BATCH, _epochs(shape, STEPS // 8, 20)),
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
    """Return the epochs of about so many steps: 3 to 60, more where these are few steps."""
    per_epoch = math.ceil(shape.n_samples / BATCH)
    most = max(most, min(300, math.ceil(FEW_STEPS / per_epoch)))
    return max(3, min(most, steps // per_epoch))
