"""Scores of predictions with 95 % intervals, and the points of their curves."""

from __future__ import annotations

from ratoon.metrics.classes import ClassRow as ClassRow
from ratoon.metrics.classes import ClassScores as ClassScores
from ratoon.metrics.classes import class_scores as class_scores
from ratoon.metrics.intervals import Score as Score
from ratoon.metrics.numbers import NumberScores as NumberScores
from ratoon.metrics.numbers import number_scores as number_scores
from ratoon.metrics.predictions import Predictions as Predictions
from ratoon.metrics.survival import SurvivalScores as SurvivalScores
from ratoon.metrics.survival import survival_scores as survival_scores

LEVEL = "95 %"
"""Level of all intervals, as text."""


def scores_of(predictions: Predictions, *, baseline: float | None = None) -> Scores:
    """Return the scores that belong to the kind of prediction.

    Parameters
    ----------
    predictions : Predictions
        Of classes, numbers or risks.
    baseline : float, optional
        For classes the code of the largest class in the training rows, for numbers the mean of the
        training targets; by default those of the samples themselves.  Risks have none.

    Examples
    --------
    >>> found = scores_of(Predictions.of_numbers([1.0, 2.0, 3.0], [1.5, 2.0, 2.5]))
    >>> round(found.r2.value, 2)
    0.75
    """
    if predictions.is_of_classes:
        return class_scores(predictions, largest=None if baseline is None else int(baseline))
    if predictions.is_of_survival:
        return survival_scores(predictions)
    return number_scores(predictions, mean=baseline)


Scores = ClassScores | NumberScores | SurvivalScores
