"""The runs of the benchmark, in phases: later phases need what earlier ones chose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dynamic.cells import DENSE, METHODS, Cell, Recipe
from dynamic.choices import best_cell, grid_cells, reference
from dynamic.rows import Row

DENSITIES = (0.01, 0.05, 0.005, 0.02, 0.10)
DENSE_SHORT = (0.25, 1.0)
"""Epochs of dense trainings that take about as long as 10 epochs, and as the longer recipes, of
a network of 1 %."""

Candidate = tuple[str, Recipe]


@dataclass(frozen=True)
class Search:
    """Candidates for a longer training, of which the validation part chooses one."""

    candidates: tuple[Candidate, ...]
    density: float = 0.01
    seeds: int = 100
    """Most seeds to train."""

    def cells(self, data: str) -> list[Cell]:
        """Return one training per candidate, scored on the validation part; none for one."""
        if len(self.candidates) == 1:
            return []
        return [
            Cell(data, method, self.density, recipe, 0, is_choice=True)
            for method, recipe in self.candidates
        ]

    def chosen(self, data: str, rows: Sequence[tuple[Cell, Row]]) -> Candidate | None:
        """Return method and recipe of the training itself; None while choices are missing."""
        if len(self.candidates) == 1:
            return self.candidates[0]
        best = best_cell(self.cells(data), rows)
        return None if best is None else (best.method, best.recipe)


def _each(methods: Sequence[str], *recipes: Recipe) -> tuple[Candidate, ...]:
    return tuple((method, recipe) for recipe in recipes for method in methods)


_MNIST = Recipe(20, learning_rate=0.1)
_DROPOUT = replace(_MNIST, dropout=0.1)
_CHANGED = Recipe(
    100, learning_rate=0.02, augment="shift=2+flip", activation="all_relu", slope=0.25
)
LONGER: dict[str, tuple[Search, ...]] = {
    "mnist": (
        Search((("rigl", _MNIST), *_each(("rigl", "snfs", "granet"), _DROPOUT))),
        Search((("rigl", _MNIST), *_each(("rigl", "snfs"), _DROPOUT))),
    ),
    "cifar10": (Search((("rigl", _CHANGED),), density=0.02, seeds=1),),
}
"""Searches for longer trainings; the second of MNIST is that among equal connections.

The recipe with changed images was chosen on the validation part by the first three epochs.
"""

EPOCHS = {"mnist": 10, "cifar10": 8, "isolet": 50, "coil20": 50, "digits": 50}


@dataclass(frozen=True)
class Wanted:
    """What to run."""

    sets: Sequence[str] = tuple(EPOCHS)
    methods: Sequence[str] = (DENSE, *METHODS)
    densities: Sequence[float] = DENSITIES
    seeds: Sequence[int] = (0, 1, 2)
    dense_seeds: Sequence[int] = (0,)
    epochs: int | None = None
    longer: bool = True

    def epochs_of(self, data: str) -> int:
        """Return the epochs of a set."""
        return self.epochs or EPOCHS[data]


Phase = Callable[[Wanted, Sequence[tuple[Cell, Row]]], Iterator[Cell]]


def grids(wanted: Wanted, rows: Sequence[tuple[Cell, Row]]) -> Iterator[Cell]:
    """Yield the trainings that choose minibatch sizes and learning rates."""
    del rows
    for data in wanted.sets:
        for kind in ("sparse", *((DENSE,) if DENSE in wanted.methods else ())):
            yield from grid_cells(data, kind, wanted.epochs_of(data))


def dense(wanted: Wanted, rows: Sequence[tuple[Cell, Row]]) -> Iterator[Cell]:
    """Yield dense trainings: all epochs, and such as take as long as sparse ones."""
    if DENSE not in wanted.methods:
        return
    for data in wanted.sets:
        epochs = wanted.epochs_of(data)
        recipe = reference(data, DENSE, epochs, rows)
        lengths = [float(epochs), *(DENSE_SHORT if data in LONGER else ())]
        for length in lengths:
            for seed in wanted.dense_seeds if length == epochs else wanted.seeds:
                yield Cell(data, DENSE, 1.0, replace(recipe, epochs=length), seed)


def methods(wanted: Wanted, rows: Sequence[tuple[Cell, Row]]) -> Iterator[Cell]:
    """Yield every method at every density, with the epochs of dense."""
    for density in wanted.densities:
        for seed in wanted.seeds:
            for data in wanted.sets:
                recipe = reference(data, "sparse", wanted.epochs_of(data), rows)
                for method in wanted.methods:
                    if method != DENSE:
                        yield Cell(data, method, density, recipe, seed)


def candidates(wanted: Wanted, rows: Sequence[tuple[Cell, Row]]) -> Iterator[Cell]:
    """Yield the trainings that choose the longer ones."""
    del rows
    for data in wanted.sets if wanted.longer else ():
        for search in LONGER.get(data, ()):
            yield from search.cells(data)


def longer(wanted: Wanted, rows: Sequence[tuple[Cell, Row]]) -> Iterator[Cell]:
    """Yield the longer trainings that the validation part chose."""
    for data in wanted.sets if wanted.longer else ():
        for search in LONGER.get(data, ()):
            found = search.chosen(data, rows)
            if found is not None:
                for seed in wanted.seeds[: search.seeds]:
                    yield Cell(data, found[0], search.density, found[1], seed)


PHASES: tuple[Phase, ...] = (grids, candidates, dense, methods, longer)
