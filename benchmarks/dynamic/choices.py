"""Choices made on the validation part of the training rows: learning rates, the best recipe."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dynamic.cells import DENSE, Cell, Recipe
from dynamic.rows import Row

RATES = {
    "sparse": (0.025, 0.05, 0.1, 0.2),
    DENSE: (0.0125, 0.025, 0.05),
    ("cifar10", DENSE): (0.005, 0.0125, 0.025),
}
"""Learning rates tried, of a set where it is named; 0.025 is that of the reference set-up."""

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
        for rate in RATES.get((data, kind), RATES[kind])
    ]


def usual(data: str, epochs: float) -> Recipe:
    """Return the reference recipe of a set."""
    return Recipe(epochs, batch=BATCHES.get(data, Recipe(epochs).batch))


def best_cell(cells: Iterable[Cell], rows: Sequence[tuple[Cell, Row]]) -> Cell | None:
    """Return the one with the highest validation accuracy; None while not all are there."""
    scores = _scores(rows)
    found = list(cells)
    if not all(cell in scores for cell in found):
        return None
    return max(found, key=lambda cell: scores[cell], default=None)


def best_rate(cells: Iterable[Cell], rows: Sequence[tuple[Cell, Row]]) -> float | None:
    """Return the rate with the highest mean validation accuracy; None while not all are there."""
    scores = _scores(rows)
    by_rate: dict[float, list[float]] = {}
    for cell in cells:
        if cell not in scores:
            return None
        by_rate.setdefault(cell.recipe.learning_rate, []).append(scores[cell])
    return max(by_rate, key=lambda rate: sum(by_rate[rate]), default=None)


def _scores(rows: Sequence[tuple[Cell, Row]]) -> dict[Cell, float]:
    """Return validation accuracies of the last epoch; a training that diverged has 0."""
    found = {cell: row["accuracy"][-1] for cell, row in rows if cell.is_choice}
    return {cell: 0.0 if math.isnan(score) else score for cell, score in found.items()}


def reference(data: str, kind: str, epochs: float, rows: Sequence[tuple[Cell, Row]]) -> Recipe:
    """Return the reference recipe, with the learning rate that the validation part chose."""
    rate = best_rate(rate_cells(data, kind, epochs), rows)
    recipe = usual(data, epochs)
    return recipe if rate is None else replace(recipe, learning_rate=rate)
