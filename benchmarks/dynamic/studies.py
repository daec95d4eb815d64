"""The runs of the benchmark, in phases: later phases need what earlier ones chose."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dynamic.cells import DENSE, METHODS, Cell, Recipe
from dynamic.choices import best_cell, rate_cells, reference
from dynamic.rows import Row

DENSITIES = (0.01, 0.05, 0.005, 0.02, 0.10)
DENSE_SHORT = (0.25, 1.0)
"""Epochs of dense trainings that take about as long as 10 epochs, and as the longer recipes, of
a network of 1 %."""

Candidate = tuple[str, Recipe]


def _each(methods: Sequence[str], *recipes: Recipe) -> tuple[Candidate, ...]:
    return tuple((method, recipe) for recipe in recipes for method in methods)


_MNIST = Recipe(20, learning_rate=0.1)
_CIFAR = Recipe(25, learning_rate=0.025, batch=100)
LONGER: dict[str, tuple[tuple[Candidate, ...], ...]] = {
    "mnist": (
        (("rigl", _MNIST), *_each(("rigl", "snfs", "granet"), replace(_MNIST, dropout=0.1))),
        _each(
            ("snfs",),
            replace(_MNIST, epochs=30, augment="shift=1"),
            replace(_MNIST, epochs=30, augment="shift=1", dropout=0.1),
        ),
    ),
    "cifar10": (
        _each(("rigl", "snfs"), replace(_CIFAR, dropout=0.1)),
        _each(("rigl", "snfs"), replace(_CIFAR, epochs=100, augment="shift+flip")),
    ),
}
"""Candidates for longer recipes at 1 %; the validation part chooses one of each group."""

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


def rates(wanted: Wanted, rows: Sequence[tuple[Cell, Row]]) -> Iterator[Cell]:
    """Yield the trainings that choose learning rates."""
    del rows
    for data in wanted.sets:
        for kind in ("sparse", *((DENSE,) if DENSE in wanted.methods else ())):
            yield from rate_cells(data, kind, wanted.epochs_of(data))


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
    """Yield the trainings that choose the longer recipes."""
    del rows
    for data in wanted.sets if wanted.longer else ():
        for group in LONGER.get(data, ()):
            yield from choice_cells(data, group)


def choice_cells(data: str, group: Sequence[Candidate]) -> list[Cell]:
    """Return one training per candidate, scored on the validation part."""
    return [Cell(data, method, 0.01, recipe, 0, is_choice=True) for method, recipe in group]


def longer(wanted: Wanted, rows: Sequence[tuple[Cell, Row]]) -> Iterator[Cell]:
    """Yield the longer trainings that the validation part chose, and the same at 5 %."""
    for data in wanted.sets if wanted.longer else ():
        for group in LONGER.get(data, ()):
            best = best_cell(choice_cells(data, group), rows)
            if best is not None:
                for density in (0.01, 0.05):
                    for seed in wanted.seeds:
                        yield Cell(data, best.method, density, best.recipe, seed)


PHASES: tuple[Phase, ...] = (rates, candidates, dense, methods, longer)
