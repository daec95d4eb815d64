"""Choices made on the validation part of the training rows: learning rates, the best recipe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dynamic.cells import DENSE, Cell, Recipe
from dynamic.rows import Row

RATES = {"sparse": (0.025, 0.05, 0.1, 0.2, 0.4), DENSE: (0.0125, 0.025, 0.05, 0.1)}
"""Learning rates tried; 0.025 is that of the reference set-up."""

CHOICE_EPOCHS = {
    ("mnist", "sparse"): 10.0,
    ("mnist", DENSE): 1.0,
    ("cifar10", "sparse"): 4.0,
    ("cifar10", DENSE): 0.25,
}
"""Length of the trainings that choose a learning rate; that of the set where it is not here."""


def rate_cells(data: str, kind: str, epochs: float) -> list[Cell]:
    """Return the trainings that choose a learning rate for dense, or for all sparse networks.

    The sparse one is chosen with the fixed topology, which favours no method that rewires.
    """
    method, density = (DENSE, 1.0) if kind == DENSE else ("static", 0.01)
    length = CHOICE_EPOCHS.get((data, kind), epochs)
    return [
        Cell(data, method, density, Recipe(length, learning_rate=rate), 0, is_choice=True)
        for rate in RATES[kind]
    ]


def best_of(cells: Iterable[Cell], rows: Sequence[tuple[Cell, Row]]) -> Cell | None:
    """Return the cell with the highest validation accuracy; of equal ones the first."""
    scores = {cell: row["accuracy"][-1] for cell, row in rows if cell.is_choice}
    found = [cell for cell in cells if not math.isnan(scores.get(cell, math.nan))]
    return max(found, key=lambda cell: scores[cell], default=None)


def reference(data: str, kind: str, epochs: float, rows: Sequence[tuple[Cell, Row]]) -> Recipe:
    """Return the reference recipe, with the learning rate that the validation part chose."""
    found = best_of(rate_cells(data, kind, epochs), rows)
    recipe = Recipe(epochs)
    return recipe if found is None else replace(recipe, learning_rate=found.recipe.learning_rate)
