"""mrPSVM: ANOVA selection and a proximal support vector machine, by map and reduce.

The proximal support vector machine (Fung and Mangasarian, KDD 2001) fits the labels -1 and 1 by
regularised least squares.  Its normal equations, and the sums of the F test, are sums over samples:
each block of rows contributes its part (map), and the parts are added (reduce).  The result is that
of one block, up to rounding, wherever the blocks were computed.  Kumar and Rath (2015) did this
with Hadoop; here joblib runs the blocks, in processes of this machine or on a Dask cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.experiments.fan_out import fan_out, shared
from ratoon.experiments.split import fold_numbers

Float = NDArray[np.float64]
CONSTANT = 1e-10
"""Features whose deviation is at most this fraction of their mean are constant up to rounding."""

MOST_FEATURES = 10_000
"""The normal equations of k features have k * k numbers; more than this is refused."""


class ProximalSVM(ClassifierMixin, BaseEstimator):
    """ANOVA feature selection and a proximal support vector machine, computed in blocks of rows.

    More than two classes are trained one against the rest.  Features are standardised.

    Parameters
    ----------
    k : int or sequence of int, default=(10, 30, 100, 300, 1000)
        Number of features with the largest F statistic to use.  Of several numbers, the one with
        the best accuracy in cross-validation of the training rows is used, the smallest of equals;
        each fold selects its own features.
    nu : float, default=1.0
        Weight of the errors; a smaller value regularises more.
    n_blocks : int, default=8
        Number of blocks of rows.  It does not change the result, except for rounding.
    n_folds : int, default=5
        Number of folds that choose ``k``.
    n_jobs : int, optional
        Blocks at the same time; None uses `joblib.parallel_config`, by default one at a time.
    random_state : int, default=0
        Seed of the folds.

    Attributes
    ----------
    k_ : int
        Number of features used.
    features_ : ndarray
        Their numbers, with the largest F statistic first.
    coef_, intercept_ : ndarray
        Weights of the standardised features and offsets, one row per class; one row for two
        classes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 3
    >>> x = rng.normal(size=(60, 40)) + 3 * np.eye(3, 40)[y]
    >>> model = ProximalSVM(k=(3, 30), n_blocks=4).fit(x, y)
    >>> model.k_, sorted(model.features_.tolist()), model.score(x, y) > 0.9
    (3, [0, 1, 2], True)
    """

    def __init__(
        self,
        k: int | Sequence[int] = (10, 30, 100, 300, 1000),
        nu: float = 1.0,
        n_blocks: int = 8,
        n_folds: int = 5,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.k = k
        self.nu = nu
        self.n_blocks = n_blocks
        self.n_folds = n_folds
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> ProximalSVM:
        """Choose ``k``, select the features and solve the normal equations."""
        wanted = self._checked()
        x, y = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise InvalidInputError(
                "ProximalSVM needs at least 2 classes; all samples are of one class."
            )
        sizes = sorted({min(size, x.shape[1]) for size in wanted})
        parallel = joblib.effective_n_jobs(self.n_jobs) > 1
        with shared(x) if parallel else nullcontext() as held:
            blocks = _Blocks(x if held is None else held.open(), codes, self.n_blocks, self.n_jobs)
            rows = np.arange(x.shape[0])
            self.k_ = self._chosen(blocks, sizes) if len(sizes) > 1 else sizes[0]
            found = _selected(blocks, rows, self.k_)
            solution = found.solve(self.k_, self.nu)
        self.features_, self.mean_, self.scale_ = found.features, found.mean, found.scale
        self.intercept_, self.coef_ = solution[0], solution[1:].T
        return self

    def decision_function(self, X: Any) -> Float:
        """Return the output of each class; for two classes that of the second."""
        check_is_fitted(self)
        x = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        z = (x[:, self.features_] - self.mean_) * self.scale_
        scores: Float = z @ self.coef_.T + self.intercept_
        return scores[:, 0] if self.classes_.size == 2 else scores

    def predict(self, X: Any) -> Array:
        """Return the class of every sample."""
        scores = self.decision_function(X)
        found: Array = self.classes_[_codes_of(scores)]
        return found

    def _checked(self) -> list[int]:
        wanted = [self.k] if isinstance(self.k, int | np.integer) else list(self.k)
        if not wanted or not all(1 <= int(size) <= MOST_FEATURES for size in wanted):
            raise InvalidParameterError(
                f"ProximalSVM: `k` must be numbers of features from 1 to {MOST_FEATURES}, got"
                f" {self.k!r}."
            )
        if not 0 < self.nu < np.inf:
            raise InvalidParameterError(f"ProximalSVM: `nu` must be positive, got {self.nu!r}.")
        for name, least in (("n_blocks", 1), ("n_folds", 2)):
            if getattr(self, name) < least:
                raise InvalidParameterError(
                    f"ProximalSVM: `{name}` must be at least {least}, got {getattr(self, name)!r}."
                )
        return [int(size) for size in wanted]

    def _chosen(self, blocks: _Blocks, sizes: list[int]) -> int:
        """Return the number of features with the best accuracy on rows left out."""
        folds = fold_numbers(blocks.codes, self.n_folds, self.random_state)
        correct = np.zeros(len(sizes), dtype=np.int64)
        for fold in range(self.n_folds):
            train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            if test.size == 0 or np.unique(blocks.codes[train]).size < 2:
                continue
            found = _selected(blocks, train, sizes[-1])
            z = (blocks.x[np.ix_(test, found.features)] - found.mean) * found.scale
            for place, size in enumerate(sizes):
                solution = found.solve(size, self.nu)
                scores = z[:, :size] @ solution[1:] + solution[0]
                said = _codes_of(scores[:, 0] if scores.shape[1] == 1 else scores)
                correct[place] += np.count_nonzero(said == blocks.codes[test])
        return sizes[int(np.argmax(correct))]


def _codes_of(scores: Float) -> NDArray[np.intp]:
    return (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)


@dataclass(frozen=True)
class _Blocks:
    """Samples, class numbers from 0, and how sums over rows are computed."""

    x: Array
    codes: NDArray[np.intp]
    n_blocks: int
    n_jobs: int | None

    @property
    def n_classes(self) -> int:
        return int(self.codes.max()) + 1

    def sum(self, function: Callable[..., tuple[Float, ...]], rows: Array, *rest: Any) -> Any:
        """Return the sums of ``function(x, rows, codes, ...)`` over the blocks of these rows."""
        tasks: Iterable[tuple[Any, ...]] = (
            (block, self.codes[block], *rest)
            for block in np.array_split(rows, self.n_blocks)
            if block.size
        )
        parts = fan_out(function, self.x, tasks, n_jobs=self.n_jobs)
        total = next(parts)
        for part in parts:
            total = tuple(one + other for one, other in zip(total, part, strict=True))
        return total


@dataclass(frozen=True)
class _Selected:
    """The best features, largest F statistic first, and their normal equations.

    The first row and column of ``gram`` belong to the offset, so that its leading part is that of
    fewer features.
    """

    features: NDArray[np.intp]
    mean: Float
    scale: Float
    gram: Float
    right: Float

    def solve(self, k: int, nu: float) -> Float:
        """Return offset and weights of the first k features, one column per output."""
        size = k + 1
        left = self.gram[:size, :size] + np.eye(size) / nu
        solution: Float = scipy.linalg.solve(left, self.right[:size], assume_a="pos")
        return solution


def _selected(blocks: _Blocks, rows: Array, k: int) -> _Selected:
    n_classes = blocks.n_classes
    counts, sums = blocks.sum(class_sums, rows, n_classes)
    means = sums / np.maximum(counts, 1)[:, np.newaxis]
    (within,) = blocks.sum(squares_within, rows, means)
    mean = sums.sum(axis=0) / rows.size
    between = counts @ (means - mean) ** 2
    deviation = np.sqrt((between + within) / rows.size)
    varies = deviation > CONSTANT * np.abs(mean)
    f = f_statistic(between, within, int(np.count_nonzero(counts)), rows.size)
    features = np.argsort(-np.where(varies, f, -1.0), kind="stable")[:k]
    scale = np.zeros(k)
    np.divide(1.0, deviation[features], out=scale, where=varies[features])
    gram, right = blocks.sum(normal_equations, rows, n_classes, features, mean[features], scale)
    return _Selected(features, mean[features], scale, gram, right)


def f_statistic(between: Float, within: Float, n_classes: int, n_samples: int) -> Float:
    """Return the F statistics of sums of squares between and within classes.

    Without variation within classes it is infinite, or 0 if there is none between them either.

    Examples
    --------
    >>> f_statistic(np.array([6.0, 1.0, 0.0]), np.array([2.0, 0.0, 0.0]), 2, 6).tolist()
    [12.0, inf, 0.0]
    """
    ratio = max(n_samples - n_classes, 1) / max(n_classes - 1, 1)
    found = np.where(between > 0, np.inf, 0.0)
    np.divide(ratio * between, within, out=found, where=within > 0)
    return found


# ---------------------------------------------------------------------------- what a block gives


def class_sums(x: Array, rows: Array, codes: Array, n_classes: int) -> tuple[Float, Float]:
    """Return the number of samples and the sum of every feature in each class.

    Examples
    --------
    >>> class_sums(np.array([[1.0], [2.0], [4.0]]), np.arange(3), np.array([0, 1, 1]), 2)
    (array([1., 2.]), array([[1.],
           [6.]]))
    """
    one_hot = np.eye(n_classes)[codes]
    return one_hot.sum(axis=0), one_hot.T @ x[rows].astype(np.float64)


def squares_within(x: Array, rows: Array, codes: Array, means: Float) -> tuple[Float]:
    """Return the squared distances of every feature to the means of the classes, summed."""
    return (((x[rows] - means[codes]) ** 2).sum(axis=0),)


def normal_equations(
    x: Array,
    rows: Array,
    codes: Array,
    n_classes: int,
    features: Array,
    mean: Float,
    scale: Float,
) -> tuple[Float, Float]:
    """Return the block's part of both sides of the normal equations."""
    z = np.ones((rows.size, features.size + 1))
    z[:, 1:] = (x[np.ix_(rows, features)] - mean) * scale
    labels = 2.0 * np.eye(n_classes)[codes] - 1.0
    return z.T @ z, z.T @ (labels[:, 1:] if n_classes == 2 else labels)
