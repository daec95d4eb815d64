"""Choices made on the validation part of the training rows: recipes of all, and longer ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dynamic.cells import DENSE, Cell, Recipe
from dynamic.rows import Row

GRIDS: dict[str | tuple[str, str], dict[int, tuple[float, ...]]] = {
    "sparse": {32: (0.025, 0.05, 0.1, 0.2)},
    DENSE: {32: (0.0125, 0.025, 0.05)},
    ("cifar10", "sparse"): {
        16: (0.025,),
        32: (0.025, 0.05),
        100: (0.025, 0.05, 0.1, 0.2),
    },
    ("cifar10", DENSE): {100: (0.005, 0.0125, 0.025)},
}
"""Learning rates tried for a minibatch size, of a set where it is named.

0.025 with 32 samples is the reference set-up; 100 samples are those of the SET paper on CIFAR-10.
"""

GRID_METHODS = {"sparse": ("static", "set", "rigl"), DENSE: (DENSE,)}
"""The recipe of all sparse networks is the one with the best mean of these methods."""

CHOICE_EPOCHS = {
    ("mnist", "sparse"): 10.0,
    ("mnist", DENSE): 1.0,
    ("cifar10", "sparse"): 4.0,
    ("cifar10", DENSE): 0.5,
}
"""Length of the trainings that choose a recipe; that of the set where it is not here."""


def grid_cells(data: str, kind: str, epochs: float) -> list[Cell]:
    """Return the trainings that choose a recipe for dense, or for all sparse networks."""
    density = 1.0 if kind == DENSE else 0.01
    length = CHOICE_EPOCHS.get((data, kind), epochs)
    grid = GRIDS.get((data, kind), GRIDS[kind])
    return [
        Cell(data, method, density, Recipe(length, rate, batch=batch), 0, is_choice=True)
        for method in GRID_METHODS[kind]
        for batch, rates in grid.items()
        for rate in rates
    ]


def best_cell(cells: Iterable[Cell], rows: Sequence[tuple[Cell, Row]]) -> Cell | None:
    """Return the one with the highest validation accuracy; None while not all are there."""
    scores = _scores(rows)
    found = list(cells)
    if not all(cell in scores for cell in found):
        return None
    return max(found, key=lambda cell: scores[cell], default=None)


def best_recipe(cells: Iterable[Cell], rows: Sequence[tuple[Cell, Row]]) -> Recipe | None:
    """Return that with the highest mean validation accuracy; None while not all are there."""
    scores = _scores(rows)
    by_recipe: dict[Recipe, list[float]] = {}
    for cell in cells:
        if cell not in scores:
            return None
        by_recipe.setdefault(cell.recipe, []).append(scores[cell])
    return max(by_recipe, key=lambda recipe: sum(by_recipe[recipe]), default=None)


def _scores(rows: Sequence[tuple[Cell, Row]]) -> dict[Cell, float]:
    """Return validation accuracies of the last epoch; a training that diverged has 0."""
    found = {cell: row["accuracy"][-1] for cell, row in rows if cell.is_choice}
    return {cell: 0.0 if math.isnan(score) else score for cell, score in found.items()}


def reference(data: str, kind: str, epochs: float, rows: Sequence[tuple[Cell, Row]]) -> Recipe:
    """Return minibatch size and learning rate that the validation part chose, at this length."""
    found = best_recipe(grid_cells(data, kind, epochs), rows)
    return Recipe(epochs) if found is None else replace(found, epochs=epochs)
