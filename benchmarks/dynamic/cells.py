"""What one run is: a set, a method, a density, a recipe and a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

from ratoon.evolution import STRATEGIES, DeepR, GraNet, Strategy

DENSE = "dense"
GRANET_START = 2.0
"""GraNet starts with this multiple of the connections that it ends with."""

METHODS: dict[str, Callable[[], Strategy]] = {
    **{
        name: STRATEGIES[name]
        for name in (
            "static",
            "set",
            "annealed_set",
            "rigl",
            "snfs",
            "gse",
            "dsr",
            "cht",
            "chts",
            "mest",
            "srigl",
        )
    },
    # At every step, as published, a rewiring would take most of the time.
    "deep_r": partial(DeepR, every=50, alpha=1e-4),
    "granet": partial(GraNet, final=1 / GRANET_START),
}
"""Every method with its published settings, except where a comment says otherwise."""


@dataclass(frozen=True)
class Recipe:
    """How a network is trained, apart from its connections."""

    epochs: float
    learning_rate: float = 0.025
    optimizer: str = "sgd"
    schedule: str = "linear"
    batch: int = 32
    weight_decay: float = 5e-4
    dropout: float = 0.0
    smoothing: float = 0.0
    augment: str | None = None
    strategy: dict[str, Any] = field(default_factory=dict, hash=False)
    """Parameters of the strategy that differ from those in `METHODS`."""

    def words(self) -> str:
        """Return everything that differs from the reference, in a line.

        >>> Recipe(10, dropout=0.1).words(), Recipe(1).words()
        ('10 epochs, dropout 0.1', '1 epoch')
        """
        usual, parts = (
            asdict(Recipe(self.epochs)),
            [f"{self.epochs:g} epoch{'' if self.epochs == 1 else 's'}"],
        )
        for name, value in asdict(self).items():
            if name == "strategy":
                parts += [f"{key} {item}" for key, item in value.items()]
            elif value != usual[name]:
                parts.append(f"{name.replace('_', ' ')} {value}")
        return ", ".join(parts)


@dataclass(frozen=True)
class Cell:
    """One run; ``is_choice`` trains without the validation part and scores on it."""

    data: str
    method: str
    density: float
    recipe: Recipe
    seed: int
    is_choice: bool = False

    def key(self) -> dict[str, Any]:
        """Return the cell as plain values, which identify its row."""
        return asdict(self)

    @classmethod
    def from_key(cls, key: dict[str, Any]) -> Cell:
        """Return the cell of a row."""
        return cls(**{**key, "recipe": Recipe(**key["recipe"])})


def epsilon_for(widths: tuple[int, ...], density: float) -> float:
    """Return the epsilon that gives a whole network this density.

    A layer then has ``epsilon * (n_in + n_out)`` connections (Erdos-Renyi), at most all of its
    positions, so a narrow output layer is denser than the others.

    >>> round(epsilon_for((784, 1568, 1568, 1568, 10), 0.01), 3)
    6.04
    """
    shapes = list(pairwise(widths))
    wanted = density * sum(a * b for a, b in shapes)
    low, high = 0.0, float(max(widths))
    for _ in range(60):
        middle = (low + high) / 2
        if sum(min(middle * (a + b), a * b) for a, b in shapes) < wanted:
            low = middle
        else:
            high = middle
    return high
