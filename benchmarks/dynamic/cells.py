"""What one run is: a set, a method, a density, a recipe and a seed."""

from __future__ import annotations

import json
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
    activation: str = "relu"
    slope: float = 0.0
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

    def text(self) -> str:
        """Return everything that differs from the reference, for a file.

        >>> Recipe(10, dropout=0.1, strategy={"every": 50}).text()
        'epochs=10 dropout=0.1 strategy={"every":50}'
        """
        usual = asdict(Recipe(self.epochs))
        parts = [f"epochs={self.epochs:g}"]
        for name, value in asdict(self).items():
            if name != "epochs" and value != usual[name]:
                text = json.dumps(value, separators=(",", ":"))
                parts.append(f"{name}={text.strip(chr(34))}")
        return " ".join(parts)

    @classmethod
    def from_text(cls, text: str) -> Recipe:
        """Return the recipe that `text` describes.

        >>> Recipe.from_text("epochs=0.5 optimizer=adam batch=100") == Recipe(
        ...     0.5, optimizer="adam", batch=100
        ... )
        True
        """
        parts = (part.partition("=") for part in text.split())
        return cls(**{name: _value(word) for name, _, word in parts})


def _value(word: str) -> Any:
    try:
        return json.loads(word)
    except json.JSONDecodeError:
        return word


@dataclass(frozen=True)
class Cell:
    """One run; ``is_choice`` trains without the validation part and scores on it."""

    data: str
    method: str
    density: float
    recipe: Recipe
    seed: int
    is_choice: bool = False

    def key(self) -> dict[str, str]:
        """Return the cell as texts, which identify its row.

        >>> Cell("mnist", "rigl", 0.01, Recipe(10), 0).key()["density"]
        '0.01'
        """
        return {
            "set": self.data,
            "method": self.method,
            "density": f"{self.density:g}",
            "recipe": self.recipe.text(),
            "seed": str(self.seed),
            "part": "validation" if self.is_choice else "test",
        }

    @classmethod
    def from_key(cls, key: dict[str, str]) -> Cell:
        """Return the cell of a row."""
        return cls(
            key["set"],
            key["method"],
            float(key["density"]),
            Recipe.from_text(key["recipe"]),
            int(key["seed"].split("-")[0]),
            is_choice=key["part"] == "validation",
        )


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
