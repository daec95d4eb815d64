"""IWSS: incremental wrapper subset selection with naive Bayes.

Features are ranked by symmetrical uncertainty and tried once, in this order; a feature is kept if
it improves the accuracy of naive Bayes in cross-validation (Bermejo, Gámez and Puerta, 2012).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ratoon.arrays import Array
from ratoon.errors import InvalidParameterError
from ratoon.experiments.split import fold_numbers

Float = NDArray[np.float64]
_AT_ONCE = 128
"""Features whose likelihoods are computed together."""


class IncrementalWrapper(ClassifierMixin, BaseEstimator):
    """Incremental wrapper subset selection (IWSS), followed by Gaussian naive Bayes.

    Parameters
    ----------
    n_folds : int, default=5
        Number of folds of the training rows that judge a feature.
    min_better : int, default=2
        A feature is kept if the accuracy over all folds is higher with it and that of at least this
        many folds is.
    n_bins : int, default=3
        Bins of equal frequency to compute the symmetrical uncertainty.
    max_tried : int, optional
        Number of features to try; by default all.
    var_smoothing : float, default=1e-9
        Added to the variances of the standardised features.
    random_state : int, default=0
        Seed of the folds.

    Attributes
    ----------
    features_ : ndarray
        Numbers of the kept features, in the order in which they were added; may be empty.
    uncertainty_ : ndarray
        Symmetrical uncertainty of every feature and the class.
    n_tried_ : int
        Number of features tried.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 2
    >>> x = rng.normal(size=(60, 40))
    >>> x[:, 7] += 3 * y
    >>> model = IncrementalWrapper().fit(x, y)
    >>> int(model.features_[0]), model.score(x, y) > 0.9
    (7, True)
    """

    def __init__(
        self,
        n_folds: int = 5,
        min_better: int = 2,
        n_bins: int = 3,
        max_tried: int | None = None,
        var_smoothing: float = 1e-9,
        random_state: int = 0,
    ) -> None:
        self.n_folds = n_folds
        self.min_better = min_better
        self.n_bins = n_bins
        self.max_tried = max_tried
        self.var_smoothing = var_smoothing
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> IncrementalWrapper:
        """Rank and select the features, and fit naive Bayes on them."""
        self._check()
        x, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.mean_ = x.mean(axis=0, dtype=np.float64)
        deviation = x.std(axis=0, dtype=np.float64)
        varies = deviation > 1e-10 * np.abs(self.mean_)
        self.scale_ = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=varies)
        self.uncertainty_ = symmetrical_uncertainty(x, codes, self.n_bins)
        order = np.argsort(-self.uncertainty_, kind="stable")
        order = order[varies[order]][: self.max_tried]
        self.n_tried_ = order.size
        self.features_ = self._selected(x, codes, order)
        if self.features_.size == 0:  # nothing is better than the largest class
            self.model_ = DummyClassifier(strategy="prior")
        else:
            self.model_ = GaussianNB(var_smoothing=self.var_smoothing)
        self.model_.fit(self._standardised(x, self.features_), y)
        return self

    def predict(self, X: Any) -> Array:
        """Return the class of every sample."""
        x = self._read(X)
        found: Array = self.model_.predict(x)
        return found

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every class."""
        x = self._read(X)
        found: Array = self.model_.predict_proba(x)
        return found

    def _read(self, X: Any) -> Float:
        check_is_fitted(self)
        x = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return self._standardised(x, self.features_)

    def _standardised(self, x: Array, features: Array) -> Float:
        found: Float = (x[:, features] - self.mean_[features]) * self.scale_[features]
        return found

    def _check(self) -> None:
        least = {"n_folds": 2, "min_better": 1, "n_bins": 2}
        if self.max_tried is not None:
            least["max_tried"] = 1
        for name, value in least.items():
            if getattr(self, name) < value:
                raise InvalidParameterError(
                    f"IncrementalWrapper: `{name}` must be at least {value}, got"
                    f" {getattr(self, name)!r}."
                )
        if self.min_better > self.n_folds:
            raise InvalidParameterError(
                f"IncrementalWrapper: `min_better` must not be above `n_folds`, {self.n_folds}, got"
                f" {self.min_better!r}."
            )
        if not 0 < self.var_smoothing < np.inf:
            raise InvalidParameterError(
                f"IncrementalWrapper: `var_smoothing` must be positive, got {self.var_smoothing!r}."
            )

    def _selected(
        self, x: Array, codes: NDArray[np.intp], order: NDArray[np.intp]
    ) -> NDArray[np.intp]:
        numbers = fold_numbers(codes, self.n_folds, self.random_state)
        folds = [_Fold.of(codes, numbers == number) for number in np.unique(numbers)]
        kept: list[int] = []
        best = np.array([fold.n_correct() for fold in folds])
        for start in range(0, order.size, _AT_ONCE):
            chunk = order[start : start + _AT_ONCE]
            z = self._standardised(x, chunk)
            likelihoods = [fold.likelihoods(z, self.var_smoothing) for fold in folds]
            first = 0
            while first < chunk.size:
                correct = np.array(
                    [
                        fold.n_correct_with(likelihood[:, :, first:])
                        for fold, likelihood in zip(folds, likelihoods, strict=True)
                    ]
                )
                is_better = correct.sum(axis=0) > best.sum()
                is_better &= (correct > best[:, np.newaxis]).sum(axis=0) >= self.min_better
                if not is_better.any():
                    break
                place = int(np.argmax(is_better))
                best = correct[:, place]
                for fold, likelihood in zip(folds, likelihoods, strict=True):
                    fold.scores += likelihood[:, :, first + place]
                first += place + 1
                kept.append(int(chunk[first - 1]))
        return np.array(kept, dtype=np.intp)


@dataclass
class _Fold:
    """Training and test rows of a fold, and the class scores of the test rows so far."""

    codes: NDArray[np.intp]
    is_test: NDArray[np.bool_]
    one_hot: Float
    scores: Float

    @classmethod
    def of(cls, codes: NDArray[np.intp], is_test: NDArray[np.bool_]) -> _Fold:
        """Return a fold; the scores are the logarithms of the class frequencies."""
        one_hot = np.eye(int(codes.max()) + 1)[codes[~is_test]]
        counts = one_hot.sum(axis=0)
        with np.errstate(divide="ignore"):  # a class without training rows is never predicted
            priors = np.log(counts / counts.sum())
        return cls(codes, is_test, one_hot, np.tile(priors, (int(is_test.sum()), 1)))

    def n_correct(self) -> int:
        """Return how many test rows are predicted correctly."""
        return int(np.count_nonzero(self.scores.argmax(axis=1) == self.codes[self.is_test]))

    def n_correct_with(self, likelihoods: Float) -> NDArray[np.intp]:
        """Return the same for each of several features added alone."""
        predicted = (self.scores[:, :, np.newaxis] + likelihoods).argmax(axis=1)
        found: NDArray[np.intp] = np.count_nonzero(
            predicted == self.codes[self.is_test, np.newaxis], axis=0
        )
        return found

    def likelihoods(self, z: Float, smoothing: float) -> Float:
        """Return log-likelihoods: test rows x classes x features."""
        train, test = z[~self.is_test], z[self.is_test]
        counts = np.maximum(self.one_hot.sum(axis=0), 1)[:, np.newaxis]
        mean = self.one_hot.T @ train / counts
        within = (train - mean[self.one_hot.argmax(axis=1)]) ** 2
        variance = self.one_hot.T @ within / counts + smoothing
        found: Float = -0.5 * (test[:, np.newaxis] - mean) ** 2 / variance
        found -= 0.5 * np.log(2 * np.pi * variance)
        return found


def symmetrical_uncertainty(x: Array, codes: NDArray[np.intp], n_bins: int) -> Float:
    """Return the symmetrical uncertainty of every feature, cut into bins, and the class.

    It is twice the mutual information, divided by the sum of both entropies: 0 for independent
    variables, 1 if each determines the other.

    Examples
    --------
    >>> x = np.array([[0.0, 5.0, 1.0], [1.0, 5.0, 0.0], [2.0, 5.0, 1.0], [3.0, 5.0, 0.0]])
    >>> symmetrical_uncertainty(x, np.array([0, 0, 1, 1]), 2).tolist()
    [1.0, 0.0, 0.0]
    """
    one_hot = np.eye(int(codes.max()) + 1)[codes]
    of_classes = _entropy(one_hot.mean(axis=0)[np.newaxis])
    found = np.zeros(x.shape[1])
    for start in range(0, x.shape[1], _AT_ONCE):
        part = x[:, start : start + _AT_ONCE]
        cuts = np.quantile(part, np.arange(1, n_bins) / n_bins, axis=0)
        bins = (part > cuts[:, np.newaxis]).sum(axis=0)
        joint = np.stack([(bins == b).T @ one_hot for b in range(n_bins)], axis=1) / len(x)
        of_bins = _entropy(joint.sum(axis=2))
        together = _entropy(joint.reshape(joint.shape[0], -1))
        total = of_bins + of_classes
        information = np.maximum(total - together, 0.0)
        np.divide(2 * information, total, out=found[start : start + _AT_ONCE], where=total > 0)
    return found


def _entropy(p: Float) -> Float:
    logs = np.log2(p, out=np.zeros_like(p), where=p > 0)
    found: Float = -(p * logs).sum(axis=1)
    return found
