"""Estimate how well a model predicts new samples, without a test set.

Cross-validation fits the same estimator to parts of the samples and predicts the rest; everything
that is learned from samples is learned again in each part.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold
from sklearn.utils import _safe_indexing

from ratoon.arrays import Array
from ratoon.datasets import Dataset
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.experiments.fan_out import fan_out
from ratoon.experiments.split import fold_numbers
from ratoon.metrics import Predictions, Scores, scores_of

LARGEST_CV = 1000
"""Most folds, and most repeats."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """Predictions of samples by models that were not trained on them, and their scores.

    Parameters
    ----------
    predictions : Predictions
        One row per repeat.
    how : str
        In words, how it was estimated.
    folds : ndarray of shape (n_repeats, n_samples)
        Number of the fold of every sample in every repeat.
    seconds : float
        Time it took.
    rows : ndarray of int, optional
        Samples that were predicted; None for all.
    """

    predictions: Predictions
    how: str
    folds: Array
    seconds: float
    rows: Array | None = None
    scores: Scores = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", scores_of(self.predictions))

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as JSON values."""
        return {"how": self.how, **self.scores.to_dict()}

    def __str__(self) -> str:
        return f"{self.scores.main_name} {self.scores.main}, by {self.how}"

    __repr__ = __str__


def folds_of(cv: str | int) -> tuple[int, int]:
    """Return folds and repeats from a text such as ``5x3``.

    Examples
    --------
    >>> folds_of("5x3"), folds_of(10)
    ((5, 3), (10, 1))
    """
    found = re.fullmatch(r"\s*(\d{1,4})\s*(?:x\s*(\d{1,4}))?\s*", str(cv), re.ASCII)
    n_folds, n_repeats = (int(found[1]), int(found[2] or 1)) if found else (0, 0)
    if not (2 <= n_folds <= LARGEST_CV and 1 <= n_repeats <= LARGEST_CV):
        raise InvalidParameterError(
            f"`cv` must be the number of folds, from 2 to {LARGEST_CV}, and of repeats, such as"
            f' "5x3"; got {str(cv)[:40]!r}.'
        )
    return n_folds, n_repeats


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    cv: str | int = "5x3",
    groups: Any = None,
    seed: int = 0,
    n_jobs: int | None = None,
    notify: Callable[[int, int], None] = lambda done, planned: None,
) -> Estimate:
    """Estimate by repeated cross-validation how well an estimator predicts new samples.

    Classes, or events of survival times, are spread evenly over the folds.  The estimator is cloned
    and fitted to the samples outside of each fold, with its own `random_state`; an integer gives
    the same numbers again.

    Parameters
    ----------
    estimator : estimator
        Classifier with ``predict_proba``, regressor, or `SparseMLPSurvival`, whose risks are
        centred on those of the training samples of their fold; it is not changed.
    X : array, SciPy matrix, table or Dataset
        Samples in rows.
    y : array-like of shape (n_samples,), optional
        Labels, numbers, or events and times; by default those of the `Dataset`.
    cv : str or int
        Folds and repeats: ``"5x3"`` is 5 folds, drawn 3 times.
    groups : array-like of shape (n_samples,), optional
        Group of each sample, such as its patient or batch: a group is never in two folds.  By
        default those of the `Dataset`.
    seed : int
        Seed of the folds.
    n_jobs : int, optional
        Number of fits at the same time, for dense arrays (see `ratoon.experiments.fan_out`).  Does
        not change the result.
    notify : callable
        Called with the numbers of fits done and planned, after each fit.

    Returns
    -------
    Estimate
        Its ``scores`` have 95 % intervals.

    Examples
    --------
    >>> from ratoon import SparseMLPClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 100))
    >>> model = SparseMLPClassifier(random_state=0)
    >>> found = cross_validate(model, X, np.where(X[:, 0] > 0, "high", "low"), cv="5x2")
    >>> found.predictions.n_repeats, found.scores.accuracy.value > 0.6
    (2, True)
    """
    started = time.perf_counter()
    n_folds, n_repeats = folds_of(cv)
    labels = X.labels if y is None and isinstance(X, Dataset) else y
    if groups is None and isinstance(X, Dataset):
        groups = X.groups
    if labels is None:
        raise InvalidInputError("cross-validation needs `y`, or a Dataset with labels.")
    is_survival = getattr(estimator, "_estimator_type", None) == "survival"
    labels = _survival_targets(estimator, labels) if is_survival else np.asarray(labels)
    if labels.ndim != 1 or (labels.dtype.names and not is_survival):
        raise InvalidInputError(
            f"cross-validation needs one label or number per sample, got `y` of shape"
            f" {labels.shape} and type {labels.dtype}."
        )
    is_classifier = hasattr(estimator, "predict_proba")
    classes, codes = np.unique(labels["event"] if is_survival else labels, return_inverse=True)
    if not (is_classifier or is_survival):
        codes = np.zeros(labels.size, dtype=np.int64)
    folds = np.stack(
        [
            _folds(codes, n_folds, seed + repeat, groups, is_classifier or is_survival)
            for repeat in range(n_repeats)
        ]
    )
    if is_survival:
        _check_events(folds, labels["event"])
    else:
        _check_folds(folds, codes, is_classifier)
    tasks = [(repeat, k) for repeat in range(n_repeats) for k in np.unique(folds[repeat]).tolist()]
    shape = (n_repeats, labels.size, classes.size) if is_classifier else (n_repeats, labels.size)
    outputs = np.zeros(shape)
    calls = (
        (estimator, labels, folds[repeat] == k, classes if is_classifier else None)
        for repeat, k in tasks
    )
    dense = isinstance(X, np.ndarray) and n_jobs not in (None, 1)
    fitted = (
        fan_out(_predicted, X, calls, n_jobs=n_jobs)
        if dense
        else (_predicted(X, *call) for call in calls)
    )
    for done, ((repeat, k), found) in enumerate(zip(tasks, fitted, strict=True), start=1):
        outputs[repeat, folds[repeat] == k] = found
        notify(done, len(tasks))
    if is_classifier:
        predictions = Predictions.of_classes(codes, outputs, classes.tolist())
    elif is_survival:
        predictions = Predictions.of_survival(labels["event"], labels["time"], outputs, folds)
    else:
        predictions = Predictions.of_numbers(labels, outputs)
    strata = "class" if is_classifier else "event" if is_survival else ""
    how = _in_words(int(folds.max()) + 1, n_repeats, strata, groups is not None)
    return Estimate(predictions, how, folds, time.perf_counter() - started)


def own_estimate(estimator: Any, y: Any) -> Estimate:
    """Return the estimate of a fit in closed form from its own cross-validation.

    It costs nothing, and is slightly too good: the shares of the members, the boundary and the
    temperature were chosen on the same predictions.

    Parameters
    ----------
    estimator : SparseMLPClassifier, SparseMLPRegressor or SparseMLPSurvival
        Fitted in closed form.
    y : array-like of shape (n_samples,)
        The targets it was fitted to.
    """
    outputs = getattr(estimator, "cross_validated_outputs_", None)
    if outputs is None:
        raise InvalidInputError(
            f"this model has no out-of-fold outputs: it was {estimator.report_.how}.\n"
            f'  Estimate with `cross_validate(model, X, y, cv="5x3")`.'
        )
    if hasattr(estimator, "classes_") and estimator._loss() != "softmax_cross_entropy":
        raise InvalidInputError(
            "the out-of-fold outputs of this model have no class probabilities, because its loss is"
            f" {estimator._loss()}.\n"
            '  Estimate with `cross_validate(model, X, y, cv="5x3")`.'
        )
    seen = np.isfinite(outputs).all(axis=1)
    is_survival = hasattr(estimator, "event_times_")
    labels = (_survival_targets(estimator, y) if is_survival else np.asarray(y))[seen]
    if is_survival:
        risks = outputs[seen, 0]
        predictions = Predictions.of_survival(labels["event"], labels["time"], risks)
    elif hasattr(estimator, "classes_"):
        codes = np.searchsorted(estimator.classes_, labels)
        logits = outputs[seen] - outputs[seen].max(axis=1, keepdims=True)
        p = np.exp(logits)
        p /= p.sum(axis=1, keepdims=True)
        predictions = Predictions.of_classes(codes, p, estimator.classes_.tolist())
    else:
        learned = estimator._target_state()[1]
        numbers = outputs[seen] * learned["target_std"] + learned["target_mean"]
        predictions = Predictions.of_numbers(labels, numbers[:, 0])
    how = (
        f"the committee's own cross-validation ({int(seen.sum())} of {seen.size} samples), which"
        f" also chose its members and is slightly too good"
    )
    folds = np.zeros((1, labels.size), dtype=np.int64)
    return Estimate(predictions, how, folds, 0.0, rows=np.flatnonzero(seen))


def _folds(codes: Array, n_folds: int, seed: int, groups: Any, stratified: bool) -> Array:
    """Return the number of the fold of every sample, from 0 and without gaps."""
    n = codes.size
    if n < 2:
        raise InvalidInputError(f"cross-validation needs at least 2 samples, got {n}.")
    if groups is None:
        folds = fold_numbers(codes, min(n_folds, n), seed)
        return np.asarray(np.unique(folds, return_inverse=True)[1])
    names = np.asarray(groups)
    if names.shape != (n,):
        raise InvalidInputError(
            f"`groups` must have one entry per sample ({n}), got {names.shape}."
        )
    n_groups = np.unique(names).size
    if n_groups < n_folds:
        raise InvalidInputError(
            f"there are {n_groups} groups, too few for {n_folds} folds; use at most {n_groups}."
        )
    kind = StratifiedGroupKFold if stratified else GroupKFold
    splits = kind(n_folds, shuffle=True, random_state=seed).split(names, codes, names)
    folds = np.zeros(n, dtype=np.int64)
    for number, (_, test) in enumerate(splits):
        folds[test] = number
    return np.asarray(np.unique(folds, return_inverse=True)[1])


def _check_folds(folds: Array, codes: Array, is_classifier: bool) -> None:
    """Raise if the samples outside of some fold could not be trained on."""
    if not is_classifier:
        return
    for one in folds:
        for fold in range(int(one.max()) + 1):
            if np.unique(codes[one != fold]).size < 2:
                raise InvalidInputError(
                    "cross-validation would have to train on samples of a single class; there are"
                    " too few samples of the other classes.\n"
                    "  Add samples, use fewer folds, or omit it."
                )


def _survival_targets(estimator: Any, y: Any) -> Array:
    """Return events and times as an array with these fields."""
    columns = estimator._check_target(y)
    found = np.empty(len(columns), dtype=[("event", bool), ("time", np.float64)])
    found["event"], found["time"] = columns.T
    return found


def _check_events(folds: Array, events: Array) -> None:
    """Raise if no sample outside of some fold has the event."""
    for one in folds:
        for fold in range(int(one.max()) + 1):
            if not events[one != fold].any():
                raise InvalidInputError(
                    f"cross-validation would have to train on samples without any event; of"
                    f" {events.size} samples {int(events.sum())} have the event.\n"
                    f"  Add samples, use fewer folds, or omit it."
                )


def _predicted(X: Any, estimator: Any, labels: Array, is_test: Array, classes: Any) -> Array:
    """Fit on the other rows; return probabilities or numbers of the test rows."""
    train, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    model = clone(estimator)
    with warnings.catch_warnings():
        # Warnings on constant features and early stopping; the score shows the effect.
        warnings.simplefilter("ignore")
        model.fit(_rows(X, train), labels[train])
        if classes is None:
            predicted = np.asarray(model.predict(_rows(X, test)))
            if labels.dtype.names is None:
                return predicted
            # Log risks are known up to a constant, which differs between fits.
            return predicted - float(np.mean(model.predict(_rows(X, train))))
        found = np.zeros((test.size, classes.size))
        # A class with one sample is absent from the training rows of its fold.
        found[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(_rows(X, test))
    return found


def _rows(X: Any, rows: Array) -> Any:
    if isinstance(X, Dataset):
        return X.take(rows)
    if isinstance(X, np.ndarray):  # a copy in memory, also of the memory map of a worker
        return np.take(np.asarray(X), rows, axis=0)
    return _safe_indexing(X, rows)


def _in_words(n_folds: int, n_repeats: int, strata: str, grouped: bool) -> str:
    repeated = f", repeated {n_repeats} times" if n_repeats > 1 else ""
    kind = f", stratified by {strata}" if strata else ""
    return f"{n_folds}-fold cross-validation{repeated}{kind}{' within groups' if grouped else ''}"
