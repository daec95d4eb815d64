"""What every section of the page is made from: the model, samples and predictions."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.datasets import Dataset
from ratoon.metrics import Predictions, Scores, scores_of

HELD_OUT = "held out"
CROSS_VALIDATED = "cross-validation"
NEW = "new"
TRAINING = "training"
UNKNOWN = "unknown"
BASES = (HELD_OUT, CROSS_VALIDATED, NEW, TRAINING, UNKNOWN)


@dataclass(frozen=True, eq=False)
class ReportContext:
    """The facts of a report; each section takes from it what it shows.

    Parameters
    ----------
    estimator : estimator
        Fitted.
    data : Dataset, optional
        The samples of the page.
    predictions : Predictions, optional
        Of the samples of ``data``, in their order; None without labels.
    basis : {"held out", "cross-validation", "new", "training", "unknown"}
        On what the scores are computed: samples held out of training; cross-validation of the
        training samples; samples whose fingerprints are not in the model; samples that the model
        was trained on; samples of which that is not known.
    trained_on : ndarray of bool, optional
        Whether the model was trained on each sample of ``data``.  Scores describe the others.
    training : Dataset, optional
        The training samples, if they are not those of ``data``.
    estimate : Estimate, optional
        Result of a cross-validation (`ratoon.experiments.cross_validate`).
    title, command : str, optional
        Heading of the page, and the command that wrote it.
    repeat : str, optional
        Python code that repeats the training and its score.
    top : int
        Number of features in the ranking.
    selector : SparseFeatureSelector or SparseAutoencoderSelector, optional
        Its ranking replaces that of the estimator.
    seconds : float, optional
        Time of the prediction.
    extras : mapping of str to object
        Data of optional sections, by the name of the section.
    """

    estimator: Any
    data: Dataset | None = None
    predictions: Predictions | None = None
    basis: str = UNKNOWN
    trained_on: NDArray[np.bool_] | None = None
    training: Dataset | None = None
    estimate: Any = None
    title: str = ""
    command: str | None = None
    repeat: str | None = None
    top: int = 25
    selector: Any = None
    seconds: float | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_classifier(self) -> bool:
        """Whether the model predicts classes."""
        return hasattr(self.estimator, "classes_")

    @cached_property
    def scored(self) -> Predictions | None:
        """The predictions that the scores describe: of samples the model was not trained on.

        All of them if it was trained on all.
        """
        if self.predictions is None or self.trained_on is None or self.basis == CROSS_VALIDATED:
            return self.predictions
        others = np.flatnonzero(~self.trained_on)
        if others.size in (0, self.trained_on.size):
            return self.predictions
        return self.predictions.take(others)

    @cached_property
    def scores(self) -> Scores | None:
        """The scores at the top of the page."""
        return None if self.scored is None else scores_of(self.scored, baseline=self._baseline)

    @cached_property
    def scores_on_training(self) -> Scores | None:
        """Scores on the samples the model was trained on, if those are only a part of the data."""
        if self.predictions is None or self.scored is self.predictions:
            return None
        assert self.trained_on is not None
        rows = np.flatnonzero(self.trained_on)
        return scores_of(self.predictions.take(rows), baseline=self._baseline)

    @property
    def reference(self) -> Dataset | None:
        """The samples on which statistics of features are computed: the training samples if known.

        Otherwise the samples of the page.
        """
        if self.training is not None:
            return self.training
        if self.data is None or self.trained_on is None or self.trained_on.all():
            return self.data
        if self.trained_on.sum() < 2:
            return self.data
        return self.data.take(np.flatnonzero(self.trained_on))

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, if known."""
        names = getattr(self.estimator, "feature_names_in_", None)
        if names is not None:
            return tuple(map(str, names))
        return None if self.data is None else self.data.feature_names

    def feature_name(self, feature: int) -> str:
        """Return the name of a feature, or its number."""
        names = self.feature_names
        return f"feature {feature}" if names is None else names[feature]

    @property
    def _baseline(self) -> float | None:
        """The largest class or the mean of the training samples, if these are known."""
        training = self.training
        if training is None or training.y is None or not training.n_samples:
            return None
        if training.is_survival:
            return None
        if not self.is_classifier:
            return float(training.y.mean())
        assert self.predictions is not None
        labels = np.asarray(training.labels, dtype=str)
        counts = [int((labels == name).sum()) for name in self.predictions.classes]
        return float(np.argmax(counts))


def sample_names(data: Dataset) -> tuple[str, ...]:
    """Return the names of samples, or their numbers from 1."""
    return data.sample_names or tuple(str(row + 1) for row in range(data.n_samples))


def with_predictions(context: ReportContext) -> ReportContext:
    """Return the context with the model's predictions of its samples, if these have labels."""
    data, estimator = context.data, context.estimator
    if data is None or data.y is None or context.predictions is not None:
        return context
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        started = time.perf_counter()
        found = predictions_of(estimator, data)
    return replace(context, predictions=found, seconds=time.perf_counter() - started)


def predictions_of(estimator: Any, data: Dataset) -> Predictions | None:
    """Return the predictions of a fitted estimator for samples with labels; None without labels.

    Labels may be numbers in the model and text in the data: they are compared as text.  Labels
    that the model does not know are classes of probability 0.

    Examples
    --------
    >>> from ratoon import SparseMLPClassifier
    >>> data = Dataset(np.eye(4), np.array([0, 1, 0, 1]), class_names=("ill", "well"))
    >>> model = SparseMLPClassifier((4,), max_iter=3, random_state=0).fit(data)
    >>> predictions_of(model, data).classes
    ('ill', 'well')
    """
    is_survival = hasattr(estimator, "event_times_")
    if data.y is None or data.is_survival != is_survival:
        return None
    samples = data.X if data.groups is None else data  # a model may centre groups
    if is_survival:
        return Predictions.of_survival(data.y["event"], data.y["time"], estimator.predict(samples))
    if not hasattr(estimator, "classes_"):
        predicted = np.asarray(estimator.predict(samples))
        return None if predicted.ndim != 1 else Predictions.of_numbers(data.y, predicted)
    p = np.asarray(estimator.predict_proba(samples))
    truth = np.asarray(data.labels, dtype=str)
    known = [str(name) for name in estimator.classes_]
    unknown = sorted(set(truth.tolist()) - set(known))
    classes = [*known, *unknown]
    codes = {name: code for code, name in enumerate(classes)}
    p = np.hstack([p, np.zeros((len(p), len(unknown)))])
    guess: Array = np.asarray(estimator.predict(samples)).astype(str)
    return Predictions.of_classes(
        [codes[name] for name in truth.tolist()],
        p,
        classes,
        [codes[name] for name in guess.tolist()],
    )
