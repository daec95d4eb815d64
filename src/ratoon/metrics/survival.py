"""Scores of predicted risks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.metrics.intervals import UNDEFINED, Score, from_variance
from ratoon.metrics.predictions import Predictions
from ratoon.survival import concordance_pairs

LARGEST_FACTOR = 4.0
"""A concordance, which is one of pairs, is at most as certain as a proportion of 4 n samples."""


@dataclass(frozen=True)
class SurvivalScores:
    """Scores of predicted risks.

    Parameters
    ----------
    n_samples, n_repeats : int
        Number of samples, and how often each was predicted; the score is the mean over the repeats.
    n_events : int
        Number of samples whose event was observed.
    concordance : Score
        Harrell's C.  Its 95 % interval is that of Wilson for as many samples as give the same
        standard error, which is the one of the package survival of R.
    """

    main_name: ClassVar[str] = "concordance"

    n_samples: int
    n_repeats: int
    n_events: int
    concordance: Score

    @property
    def main(self) -> Score:
        """The score that is named first."""
        return self.concordance

    def to_dict(self) -> dict[str, Any]:
        """Return all scores as JSON values."""
        return asdict(self)


def survival_scores(predictions: Predictions) -> SurvivalScores:
    """Compute the scores of predicted risks.

    After a cross-validation, pairs are compared inside folds: the risks of two folds come from
    different models.

    Examples
    --------
    >>> event, time = np.ones(20, dtype=bool), np.arange(20.0)
    >>> found = survival_scores(Predictions.of_survival(event, time, -time))
    >>> str(found.concordance)
    '1.000 (0.954 to 1.000)'
    """
    n, events = predictions.n_samples, predictions.events
    assert events is not None
    if n == 0:
        raise InvalidInputError("there are no samples to score.")
    parts = predictions.parts
    if parts is None:
        parts = np.zeros((predictions.n_repeats, n), dtype=np.int64)
    values, influence = [], np.zeros(n)
    for risk, part in zip(predictions.predicted, parts, strict=True):
        concordant, comparable = _inside(part, events, predictions.truth, risk)
        if not comparable.any():
            return SurvivalScores(n, predictions.n_repeats, int(events.sum()), UNDEFINED)
        values.append(float(concordant.sum() / comparable.sum()))
        # Every pair is in both sums twice, hence the 2.
        influence += 2.0 * (concordant - values[-1] * comparable) / comparable.sum()
    mean = float(np.mean(values))
    variance = float(np.square(influence / predictions.n_repeats).sum())
    concordance = from_variance(mean, variance, LARGEST_FACTOR * n)
    return SurvivalScores(n, predictions.n_repeats, int(events.sum()), concordance)


def _inside(part: Array, events: Array, times: Array, risk: Array) -> tuple[Array, Array]:
    """Return concordant and comparable pairs of every sample inside its part."""
    concordant, comparable = np.zeros(part.size), np.zeros(part.size)
    for number in np.unique(part):
        rows = np.flatnonzero(part == number)
        found = concordance_pairs(events[rows], times[rows], risk[rows])
        concordant[rows], comparable[rows] = found
    return concordant, comparable
