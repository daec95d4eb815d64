"""The first part of `ratoon demo`: what rewiring is worth on 1,797 images of digits."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from ratoon.cli.terminal import count, print_table, print_text

STRATEGIES = {
    "static": "fixed connections",
    "annealed_set": "SET, annealed",
    "rigl": "RigL",
}
WIDTHS = (1000, 1000)
DENSITY = 0.01
EPOCHS = 40


@dataclass(frozen=True)
class Digits:
    """Test accuracy after every epoch, for each strategy and split, and seconds of a fit."""

    curves: dict[str, list[list[float]]]
    seconds: dict[str, float]
    n_connections: int
    n_positions: int

    @property
    def accuracy(self) -> dict[str, float]:
        """Mean accuracy of the last epoch."""
        return {
            name: float(np.mean([curve[-1] for curve in curves]))
            for name, curves in self.curves.items()
        }


def run_digits(splits: int, epochs: int, seed: int, threads: int | None) -> Digits:
    """Train the same sparse network with every strategy on the same splits."""
    from ratoon import SparseMLPClassifier
    from ratoon.experiments import split_rows
    from ratoon.experiments.strategies import digits

    X, y = digits()
    X = X[:, np.count_nonzero(X, axis=0) > 10]  # without pixels that are (nearly) always black
    curves: dict[str, list[list[float]]] = {name: [] for name in STRATEGIES}
    seconds = dict.fromkeys(STRATEGIES, 0.0)
    for number in range(splits):
        training, test = split_rows(y, 1 / 3, seed + number, stratify=True)
        for name in STRATEGIES:
            begin = time.perf_counter()
            model = SparseMLPClassifier(
                WIDTHS,
                density=DENSITY,
                evolution=name,
                max_iter=epochs,
                random_state=seed + number,
                n_jobs=threads,
            )
            # The test rows are only scored: nothing is chosen by these scores.
            model.fit(X[training], y[training], eval_set=(X[test], y[test]))
            seconds[name] += (time.perf_counter() - begin) / splits
            curves[name].append([float(score) for score in model.validation_scores_ or ()])
    network = model.network_
    return Digits(curves, seconds, network.n_connections, network.n_positions)


def show_digits(digits: Digits) -> None:
    """Print a line for each strategy."""
    print_table(
        "",
        ["method", "held-out accuracy", "seconds"],
        [
            [STRATEGIES[name], f"{100 * accuracy:.1f} %", f"{digits.seconds[name]:.2f}"]
            for name, accuracy in digits.accuracy.items()
        ],
    )
    splits = count(len(digits.curves["static"]), "split")
    print_text(
        f"   {digits.n_connections:,} connections; a dense network would have"
        f" {digits.n_positions:,}. Means over {splits}.\n"
    )
