"""Scores of predicted numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.metrics.intervals import UNDEFINED, Score, bootstrap, mean_loss
from ratoon.metrics.predictions import Predictions


@dataclass(frozen=True)
class NumberScores:
    """Scores of predicted numbers, each with a 95 % interval.

    Parameters
    ----------
    n_samples, n_repeats : int
        Number of samples, and how often each was predicted; scores are means over the repeats.
    r2 : Score
        Coefficient of determination; bootstrap over samples.
    rmse : Score
        Root of the mean squared error; bootstrap over samples.
    mae : Score
        Mean absolute error.
    baseline : float
        RMSE of always predicting the mean.
    """

    main_name: ClassVar[str] = "R squared"

    n_samples: int
    n_repeats: int
    r2: Score
    rmse: Score
    mae: Score
    baseline: float

    @property
    def main(self) -> Score:
        """The score that is named first."""
        return self.r2

    def to_dict(self) -> dict[str, Any]:
        """Return all scores as JSON values."""
        return asdict(self)


def number_scores(predictions: Predictions, *, mean: float | None = None) -> NumberScores:
    """Compute the scores of predicted numbers.

    Parameters
    ----------
    predictions : Predictions
        At least one sample.
    mean : float, optional
        Mean of the training targets, for the baseline; by default that of these samples.

    Examples
    --------
    >>> found = number_scores(Predictions.of_numbers([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 5.0]))
    >>> found.r2.value, found.rmse.value, found.mae.value
    (0.8, 0.5, 0.25)
    """
    truth, n = predictions.truth, predictions.n_samples
    if n == 0:
        raise InvalidInputError("there are no samples to score.")
    errors = predictions.predicted - truth
    squares = np.square(errors).mean(axis=0)
    return NumberScores(
        n_samples=n,
        n_repeats=predictions.n_repeats,
        r2=_r2(squares, truth),
        rmse=_rmse(squares),
        mae=mean_loss(np.abs(errors).mean(axis=0)),
        baseline=float(np.sqrt(np.square(truth - (truth.mean() if mean is None else mean)).mean())),
    )


def _rmse(squares: Array) -> Score:
    value = float(np.sqrt(squares.mean()))
    limits = bootstrap(lambda counts: np.sqrt(counts @ squares / squares.size), squares.size)
    return Score(value) if limits is None else Score(value, *limits)


def _r2(squares: Array, truth: Array) -> Score:
    centred = truth - truth.mean()
    total = float(np.square(centred).sum())
    if truth.size < 2 or total == 0.0:
        return UNDEFINED
    value = 1.0 - float(squares.sum()) / total

    def resampled(counts: Array) -> Array:
        means = counts @ centred / truth.size
        totals = counts @ np.square(centred) - truth.size * np.square(means)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(1.0 - counts @ squares / np.where(totals > 0, totals, np.nan))

    limits = bootstrap(resampled, truth.size)
    return Score(value) if limits is None else Score(value, *limits)
