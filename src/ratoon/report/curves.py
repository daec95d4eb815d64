"""Learning curves: a score or loss per epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.errors import InvalidInputError
from ratoon.report.style import CYCLE, new_axes, tidy

Runs = Sequence[Sequence[float]]


@dataclass(eq=False)
class LearningCurveDisplay:
    """One curve per method; the band is one standard deviation over its runs.

    Parameters
    ----------
    curves : mapping of str to sequence of sequences
        For each method, its runs: one number per epoch.
    ylabel : str
        Label of the vertical axis.

    Examples
    --------
    >>> display = LearningCurveDisplay({"SET": [[0.5, 0.8], [0.6, 0.9]]})
    >>> display.mean("SET").round(2).tolist()
    [0.55, 0.85]
    """

    curves: Mapping[str, Runs]
    ylabel: str = "accuracy"
    figure_: Any = field(default=None, init=False, repr=False)
    ax_: Any = field(default=None, init=False, repr=False)

    @classmethod
    def from_estimator(cls, estimator: Any, *, name: str | None = None) -> LearningCurveDisplay:
        """Show the validation score of a fitted estimator, or its training loss without one."""
        history = estimator.history_
        scores = history.column("validation_score")
        title = name or type(estimator).__name__
        if scores and None not in scores:
            return cls({title: [scores]}, ylabel="validation score")
        return cls({title: [history.column("loss")]}, ylabel="training loss")

    def runs(self, name: str) -> NDArray[np.float64]:
        """Return the runs of a method as an array (runs, epochs), cut to the shortest."""
        runs = self.curves[name]
        if not runs or not min(len(run) for run in runs):
            raise InvalidInputError(f"{name}: a curve needs at least one run of one epoch.")
        length = min(len(run) for run in runs)
        return np.array([run[:length] for run in runs], dtype=np.float64)

    def mean(self, name: str) -> NDArray[np.float64]:
        """Return the mean over the runs, epoch by epoch."""
        return np.asarray(self.runs(name).mean(axis=0))

    def plot(self, ax: Any | None = None) -> LearningCurveDisplay:
        """Draw the curves."""
        from matplotlib.ticker import MaxNLocator

        self.figure_, self.ax_ = new_axes(ax)
        for (name, _), colour in zip(self.curves.items(), CYCLE * 3, strict=False):
            runs = self.runs(name)
            epochs = np.arange(1, runs.shape[1] + 1)
            marker = "o" if epochs.size == 1 else None  # a line with one point is invisible
            self.ax_.plot(
                epochs, runs.mean(axis=0), color=colour, label=name, linewidth=1.6, marker=marker
            )
            if runs.shape[0] > 1:
                low, high = (runs.mean(axis=0) + s * runs.std(axis=0) for s in (-1, 1))
                self.ax_.fill_between(epochs, low, high, color=colour, alpha=0.18, linewidth=0)
        # Epochs are whole numbers.
        self.ax_.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
        self.ax_.set_xlabel("epoch")
        self.ax_.set_ylabel(self.ylabel)
        self.ax_.legend(frameon=False)
        tidy(self.ax_)
        return self
