"""The trainings behind the paper's tables: SET and FixProb, several trials, both protocols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ratoon.datasets import Dataset
from ratoon.evolution import Static
from ratoon.experiments.paper_data import paper_data
from ratoon.experiments.paper_figures import PAPER_SETS, PaperSet
from ratoon.experiments.trial import PaperSettings, Trial, run_trial, split_rows

VALIDATION = 0.2


@dataclass(frozen=True)
class Effort:
    """How much is computed, and on what."""

    trials: int = 5
    epochs: int | None = None
    seed: int = 0
    n_threads: int = 1
    scale: float = 1.0
    sets: tuple[str, ...] = tuple(PAPER_SETS)
    paths: Mapping[str, Path] = field(default_factory=dict)
    tell: Callable[[str], None] = lambda text: None

    def settings(self, known: PaperSet) -> PaperSettings:
        """Return the paper's settings with the epochs and the scale asked for."""
        hidden = tuple(max(10, round(self.scale * width)) for width in known.settings.hidden)
        n_epochs = known.settings.n_epochs if self.epochs is None else self.epochs
        return replace(known.settings, hidden=hidden, n_epochs=n_epochs)

    def data(self, known: PaperSet) -> tuple[Dataset, str]:
        """Return the data of a set, and what they are."""
        return paper_data(known, path=self.paths.get(known.name), scale=self.scale, seed=self.seed)


def run_trials(
    data: Dataset,
    settings: PaperSettings,
    effort: Effort,
    *,
    method: str = "SET",
    validation: float = 0.0,
) -> list[Trial]:
    """Train as often as asked, each time on another split of two thirds to one third."""
    assert data.y is not None
    x = np.ascontiguousarray(data.X.toarray() if data.is_sparse else data.X)
    strategy: Any = settings.strategy() if method == "SET" else Static()
    trials = []
    for number in range(effort.trials):
        seed = effort.seed + number
        train_rows, test_rows = split_rows(data.y, 1 / 3, seed)
        trials.append(
            run_trial(
                method,
                x,
                data.y,
                train_rows,
                test_rows,
                settings=settings,
                strategy=strategy,
                seed=seed,
                validation_fraction=validation,
                n_threads=effort.n_threads,
            )
        )
        effort.tell(f"{method}: trial {number + 1} of {effort.trials}")
    return trials


def percent(values: list[float]) -> str:
    """Return mean and standard deviation in percent.

    Examples
    --------
    >>> percent([0.5, 0.7]), percent([0.5])
    ('60.0 ± 10.0', '50.0')
    """
    mean, spread = 100 * float(np.mean(values)), 100 * float(np.std(values))
    return f"{mean:.1f} ± {spread:.1f}" if len(values) > 1 else f"{mean:.1f}"
