"""Scores of predicted classes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import roc_auc_score

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.metrics.intervals import UNDEFINED, Score, area, mean_loss, mean_of, wilson
from ratoon.metrics.predictions import Predictions

_SMALLEST = float(np.finfo(np.float64).eps)
"""A probability of 0 counts as this much in the log-loss, as in scikit-learn."""


@dataclass(frozen=True)
class ClassRow:
    """Scores of one class against the rest."""

    name: str
    n_samples: int
    precision: Score
    recall: Score
    roc_auc: Score


@dataclass(frozen=True)
class ClassScores:
    """Scores of predicted classes, each with a 95 % interval.

    Parameters
    ----------
    n_samples, n_repeats : int
        Number of samples, and how often each was predicted; scores are means over the repeats.
    accuracy : Score
        Wilson's interval, every sample counted once.
    balanced_accuracy : Score
        Mean recall of the classes.
    roc_auc : Score
        Mean over the classes, each against the rest; for two classes the area of the second.
    log_loss, brier : Score
        Proper scores of the probabilities; smaller is better.  As in scikit-learn the Brier score
        of two classes is that of one of them, and of more classes the sum over all.
    baseline : float
        Accuracy of always predicting the largest class.
    largest : str
        Name of that class.
    agreement : float, optional
        With repeats: correlation between two repeats of whether a sample is predicted correctly.
    classes : tuple of ClassRow
        Per class.
    """

    main_name: ClassVar[str] = "accuracy"

    n_samples: int
    n_repeats: int
    accuracy: Score
    balanced_accuracy: Score
    roc_auc: Score
    log_loss: Score
    brier: Score
    baseline: float
    largest: str
    agreement: float | None
    classes: tuple[ClassRow, ...]

    @property
    def main(self) -> Score:
        """The score that is named first."""
        return self.accuracy

    def to_dict(self) -> dict[str, Any]:
        """Return all scores as JSON values."""
        return asdict(self)


def class_scores(predictions: Predictions, *, largest: int | None = None) -> ClassScores:
    """Compute the scores of predicted classes.

    Parameters
    ----------
    predictions : Predictions
        At least one sample.
    largest : int, optional
        Code of the largest class of the training rows, for the baseline; by default that of these
        samples.

    Examples
    --------
    >>> p = [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]]
    >>> found = class_scores(Predictions.of_classes([0, 1, 1, 0], p, ("ill", "well")))
    >>> str(found.accuracy), found.baseline
    ('0.750 (0.301 to 0.954)', 0.5)
    >>> round(found.roc_auc.value, 3), round(found.brier.value, 3)
    (1.0, 0.125)
    """
    truth, n = predictions.truth, predictions.n_samples
    if n == 0:
        raise InvalidInputError("there are no samples to score.")
    assert predictions.probabilities is not None
    right = predictions.right()
    rows = tuple(_class_row(predictions, code) for code in range(len(predictions.classes)))
    counts = np.bincount(truth, minlength=len(predictions.classes))
    most = int(counts.argmax()) if largest is None else largest
    defined = [row for row in rows if row.n_samples > 0]
    log_losses, briers = _losses(predictions)
    return ClassScores(
        n_samples=n,
        n_repeats=predictions.n_repeats,
        accuracy=wilson(float(right.mean()), n),
        balanced_accuracy=mean_of([row.recall for row in defined]),
        roc_auc=_mean_area(rows),
        log_loss=mean_loss(log_losses),
        brier=mean_loss(briers),
        baseline=float(counts[most] / n),
        largest=predictions.classes[most],
        agreement=_agreement(right),
        classes=rows,
    )


def _class_row(predictions: Predictions, code: int) -> ClassRow:
    is_class = predictions.truth == code
    chosen = predictions.predicted == code
    n_repeats, n = predictions.n_repeats, int(is_class.sum())
    hits = float((chosen & is_class).sum()) / n_repeats
    n_chosen = float(chosen.sum()) / n_repeats
    return ClassRow(
        predictions.classes[code],
        n,
        wilson(hits / n_chosen, n_chosen) if n_chosen else UNDEFINED,
        wilson(hits / n, n) if n else UNDEFINED,
        _area(predictions, code),
    )


def _area(predictions: Predictions, code: int) -> Score:
    is_class, p = predictions.truth == code, predictions.probabilities
    n_class = int(is_class.sum())
    if p is None or not 0 < n_class < is_class.size:
        return UNDEFINED
    areas = [roc_auc_score(is_class, scores[:, code]) for scores in p]
    return area(float(np.mean(areas)), n_class, is_class.size - n_class)


def _mean_area(rows: tuple[ClassRow, ...]) -> Score:
    """Return the mean area; the classes' limits are averaged, because the areas are correlated."""
    if len(rows) == 2:
        return rows[1].roc_auc
    known = [row.roc_auc for row in rows if row.roc_auc.value is not None]
    if not known:
        return UNDEFINED
    values = np.array([(s.value, s.low, s.high) for s in known], dtype=np.float64).mean(axis=0)
    return Score(*values.tolist())


def _losses(predictions: Predictions) -> tuple[Array, Array]:
    """Return the log-loss and the Brier score of every sample, averaged over the repeats."""
    p, truth = predictions.probabilities, predictions.truth
    assert p is not None
    samples = np.arange(truth.size)
    likely = np.clip(p[:, samples, truth], _SMALLEST, 1.0)
    goal = np.zeros(p.shape[1:])
    goal[samples, truth] = 1.0
    squares = np.square(p - goal).sum(axis=2)
    if len(predictions.classes) == 2:
        squares = squares / 2
    return -np.log(likely).mean(axis=0), squares.mean(axis=0)


def _agreement(right: Array) -> float | None:
    """Return the mean correlation of right and wrong between the repeats."""
    if len(right) < 2 or (right == right[:, :1]).all(axis=1).any():
        return None
    correlations = np.atleast_2d(np.corrcoef(right.astype(np.float64)))
    return float(correlations[np.triu_indices(len(right), 1)].mean())
