"""Lines of the tables and of the picture: the runs that differ only in their seed."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dynamic.cells import DENSE, Cell, Recipe
from dynamic.rows import Row


@dataclass(frozen=True, eq=False)
class Line:
    """The mean over the seeds of one set, method, density and recipe."""

    data: str
    method: str
    density: float
    recipe: Recipe
    by_seed: dict[int, Row]

    @property
    def n_seeds(self) -> int:
        """Number of seeds; a row can be the mean over several."""
        return sum(row["seeds"] for row in self.by_seed.values())

    @property
    def final(self) -> dict[int, float] | None:
        """Test accuracy after the last epoch, by seed; None where only means are known."""
        if any(row["seeds"] > 1 for row in self.by_seed.values()):
            return None
        return {seed: row["accuracy"][-1] for seed, row in self.by_seed.items()}

    @property
    def accuracy(self) -> float:
        """Mean test accuracy after the last epoch."""
        rows = self.by_seed.values()
        return sum(row["seeds"] * row["accuracy"][-1] for row in rows) / self.n_seeds

    @property
    def error(self) -> float | None:
        """Standard error of that mean over the seeds."""
        n = self.n_seeds
        if n < 2:
            return None
        squares = 0.0
        for row in self.by_seed.values():
            squares += row["seeds"] * (row["accuracy"][-1] - self.accuracy) ** 2
            if row["seeds"] > 1:
                squares += row["seeds"] * (row["seeds"] - 1) * row["error"] ** 2
        return math.sqrt(squares / (n - 1) / n)

    def curve(self) -> tuple[Any, Any]:
        """Return CPU seconds up to the end of every epoch, and the mean accuracy there.

        The seconds of an epoch are the least over the seeds, because other processes can only
        make them more; for a dense network, whose epochs are all alike, also the least over its
        whole epochs.
        """
        n_epochs = min(len(row["seconds"]) for row in self.by_seed.values())
        each = np.array([row["seconds"][:n_epochs] for row in self.by_seed.values()]).min(axis=0)
        if self.method == DENSE and n_epochs > 1:
            each[: math.floor(self.recipe.epochs)] = each[: math.floor(self.recipe.epochs)].min()
        accuracy = [row["accuracy"][:n_epochs] for row in self.by_seed.values()]
        weights = [row["seeds"] for row in self.by_seed.values()]
        return np.cumsum(each), np.average(accuracy, axis=0, weights=weights)

    @property
    def seconds(self) -> float:
        """CPU seconds of a training."""
        return float(self.curve()[0][-1])

    @property
    def connections(self) -> float:
        """Mean number of connections over the training."""
        return float(np.mean([row["connections"] for row in self.by_seed.values()]))

    @property
    def megabytes(self) -> float:
        """Indices, weights and momentum (dense: weights, gradients and momentum)."""
        return float(max(row["megabytes"] for row in self.by_seed.values()))

    def facts(self) -> dict[str, Any]:
        """Return the line as plain values."""
        seconds, accuracy = self.curve()
        return {
            "set": self.data,
            "method": self.method,
            "density": self.density,
            "recipe": self.recipe.words(),
            "seeds": self.n_seeds,
            "accuracy": self.accuracy,
            "standard_error": self.error,
            "cpu_seconds": self.seconds,
            "mean_connections": round(self.connections),
            "megabytes": self.megabytes,
            "cpu_seconds_by_epoch": [float(value) for value in seconds],
            "accuracy_by_epoch": [float(value) for value in accuracy],
        }

    def time_to(self, accuracy: float) -> float | None:
        """Return the CPU seconds from which the mean accuracy stays at that or above."""
        seconds, reached = self.curve()
        below = np.flatnonzero(reached < accuracy)
        first = 0 if below.size == 0 else int(below[-1]) + 1
        return float(seconds[first]) if first < reached.size else None

    def gain_over(self, other: Line) -> tuple[float, float | None]:
        """Return mean and standard error of the difference.

        It is that of equal seeds, or of the means where those of single seeds are not known.
        """
        if self.final is None or other.final is None:
            both = self.error is not None and other.error is not None
            error = math.hypot(self.error or 0.0, other.error or 0.0) if both else None
            return self.accuracy - other.accuracy, error
        seeds = sorted(self.final.keys() & other.final.keys())
        gains = [self.final[seed] - other.final[seed] for seed in seeds]
        if len(gains) < 2:
            return gains[0] if gains else float("nan"), None
        return float(np.mean(gains)), float(np.std(gains, ddof=1) / math.sqrt(len(gains)))


def lines_of(rows: Sequence[tuple[Cell, Row]], *, of_choices: bool = False) -> list[Line]:
    """Return one line for all runs that differ only in their seed, in order of appearance."""
    found: dict[str, Line] = {}
    for cell, row in rows:
        if cell.is_choice is not of_choices or not row["seconds"]:
            continue
        key = json.dumps({**asdict(cell), "seed": 0}, sort_keys=True)
        line = found.setdefault(key, Line(cell.data, cell.method, cell.density, cell.recipe, {}))
        line.by_seed[cell.seed] = row
    return list(found.values())


def pick(lines: Sequence[Line], data: str, method: str, **wanted: Any) -> Line | None:
    """Return the line with these properties, also of its recipe; None if there is none."""
    for line in lines:
        if (line.data, line.method) != (data, method):
            continue
        values = {**asdict(line.recipe), "density": line.density, "recipe": line.recipe}
        if all(values[name] == value for name, value in wanted.items()):
            return line
    return None
