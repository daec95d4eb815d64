"""Choices made on the validation part of the training rows: learning rates, the best recipe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dynamic.cells import DENSE, Cell, Recipe
from dynamic.rows import Row

RATES = {"sparse": (0.025, 0.05, 0.1, 0.2), DENSE: (0.0125, 0.025, 0.05)}
"""Learning rates tried; 0.025 is that of the reference set-up."""

RATE_METHODS = {"sparse": ("static", "set", "rigl"), DENSE: (DENSE,)}
"""One rate for all sparse networks has the best mean of these methods."""

BATCHES = {"cifar10": 100}
"""Samples per minibatch; 100 is that of the SET paper on CIFAR-10."""

CHOICE_EPOCHS = {
    ("mnist", "sparse"): 10.0,
    ("mnist", DENSE): 1.0,
    ("cifar10", "sparse"): 4.0,
    ("cifar10", DENSE): 0.5,
}
"""Length of the trainings that choose a learning rate; that of the set where it is not here."""


def rate_cells(data: str, kind: str, epochs: float) -> list[Cell]:
    """Return the trainings that choose a learning rate for dense, or for all sparse networks."""
    density = 1.0 if kind == DENSE else 0.01
    length = CHOICE_EPOCHS.get((data, kind), epochs)
    return [
        Cell(data, method, density, replace(usual(data, length), learning_rate=rate), 0, True)
        for method in RATE_METHODS[kind]
        for rate in RATES[kind]
    ]


def usual(data: str, epochs: float) -> Recipe:
    """Return the reference recipe of a set."""
    return Recipe(epochs, batch=BATCHES.get(data, Recipe(epochs).batch))


def best_of(cells: Iterable[Cell], rows: Sequence[tuple[Cell, Row]]) -> Recipe | None:
    """Return the recipe with the highest validation accuracy, in the mean over its methods.

    A recipe counts once all its trainings are there; one that diverged counts as 0.
    """
    scores = {cell: row["accuracy"][-1] for cell, row in rows if cell.is_choice}
    by_recipe: dict[Recipe, list[float | None]] = {}
    for cell in cells:
        by_recipe.setdefault(cell.recipe, []).append(scores.get(cell))
    means = {
        recipe: sum(0.0 if math.isnan(score) else score for score in found) / len(found)
        for recipe, found in by_recipe.items()
        if None not in found
    }
    return max(means, key=lambda recipe: means[recipe], default=None)


def reference(data: str, kind: str, epochs: float, rows: Sequence[tuple[Cell, Row]]) -> Recipe:
    """Return the reference recipe, with the learning rate that the validation part chose."""
    found = best_of(rate_cells(data, kind, epochs), rows)
    recipe = usual(data, epochs)
    return recipe if found is None else replace(recipe, learning_rate=found.learning_rate)
