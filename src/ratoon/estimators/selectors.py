"""Feature selectors: features ranked by the strength of their connections in trained networks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.explain import relative_strength
from ratoon.estimators.parameters import short
from ratoon.estimators.threads import threads_for
from ratoon.evolution import SET, RewiringHasNoEffectWarning
from ratoon.rng import derive_generator, derive_seed, draw_root
from ratoon.samples.checked import checked_samples, targets_or_labels
from ratoon.samples.in_memory import wrap
from ratoon.samples.statistics import ConstantFeatureWarning

RESAMPLING = ("folds", "seeds")

LARGEST_N_REPEATS = 100_000


class StrengthSelector(SelectorMixin, BaseEstimator):
    """Base class: select the features with the largest mean strength over several networks."""

    n_features_to_select: Any
    n_repeats: Any

    def _set_strengths(self, strengths: Array) -> None:
        """Set the fitted attributes from one row of strengths per network."""
        scaled = np.stack([relative_strength(row) for row in strengths])
        k = self._n_selected(scaled.shape[1])
        self.strengths_ = scaled
        self.strength_ = scaled.mean(axis=0)
        self.strength_spread_ = scaled.std(axis=0)
        self.ranking_ = np.empty(scaled.shape[1], dtype=np.int64)
        order = top_features(self.strength_, scaled.shape[1])
        self.ranking_[order] = np.arange(1, order.size + 1)
        self.selection_frequency_ = selection_frequency(scaled, k)
        self.stability_ = stability_index(scaled, k)
        self.n_features_ = k
        self.support_ = self.ranking_ <= k

    def _n_selected(self, n_features: int) -> int:
        """Return the number of features to keep."""
        wanted = self.n_features_to_select
        is_number = isinstance(wanted, int | float | np.number) and not isinstance(wanted, bool)
        if is_number and wanted >= n_features and wanted < float("inf"):
            return n_features
        if is_number and wanted >= 1 and float(wanted).is_integer():
            return min(int(wanted), n_features)
        if is_number and 0.0 < wanted < 1.0:
            return max(1, round(float(wanted) * n_features))
        raise InvalidParameterError(
            f"{type(self).__name__}: `n_features_to_select` must be a whole number of at least 1 or"
            f" a fraction in (0, 1), got {wanted!r}."
        )

    def _check_repeats(self) -> None:
        n = self.n_repeats
        if not isinstance(n, int | np.integer) or not 1 <= n <= LARGEST_N_REPEATS:
            raise InvalidParameterError(
                f"{type(self).__name__}: `n_repeats` must be a whole number of at least 1 and at"
                f" most {LARGEST_N_REPEATS:,}, got {n!r}."
            )

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self)
        return np.asarray(self.support_)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Mean strength of every feature; the sum is 1."""
        check_is_fitted(self)
        return np.asarray(self.strength_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class SparseFeatureSelector(StrengthSelector):
    """Select the features that sparse networks connect to most strongly.

    Several networks are trained, on different subsets of the samples or with different seeds.  The
    strength of a feature is the sum, over its connections, of the magnitude of the weight times the
    strength of the neuron it leads to.  Features are ranked by their mean strength; a stability
    index measures how well the networks agree.

    Selection uses the labels, so it belongs inside a pipeline: if features are selected on all
    samples, later test scores are too optimistic.

    Parameters
    ----------
    n_features_to_select : int or float, default=50
        Number of features to keep, or a fraction of them in (0, 1).
    estimator : estimator, optional
        Estimator to train; once fitted it must have ``feature_strength`` or
        ``feature_importances_``.  By default a classifier or regressor, depending on `y`, with one
        hidden layer rewired by SET.
    n_repeats : int, default=5
        Number of networks to train.
    resample : {"folds", "seeds"}, default="folds"
        Whether each network leaves out a different fold of the samples, or all networks are trained
        on all samples with different seeds.
    propagate : bool, default=True
        Whether the strength of a feature takes all layers into account, or only the weights of the
        first.
    n_jobs : int, optional
        Number of networks to train in parallel, with joblib.
    random_state : int, generator or None, default=None
        An integer makes the result reproducible.

    Attributes
    ----------
    strength_ : ndarray of shape (n_features,)
        Mean strength of every feature, normalised to sum 1 in every network.
    strength_spread_ : ndarray of shape (n_features,)
        Standard deviation over the networks.
    strengths_ : ndarray of shape (n_repeats, n_features)
        Normalised strengths in every network.
    ranking_ : ndarray of shape (n_features,)
        1 for the strongest feature, 2 for the next.
    support_ : ndarray of bool
        Which features are kept.
    selection_frequency_ : ndarray of shape (n_features,)
        Fraction of the networks in which a feature is among those to keep.
    stability_ : float
        Agreement of the networks (Nogueira et al., 2018): 1 is perfect, 0 is random.
    n_features_ : int
        Number of features kept.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    SparseAutoencoderSelector : Selects features without labels.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 30))
    >>> y = X[:, 4] + X[:, 7] > 0
    >>> selector = SparseFeatureSelector(2, random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist(), selector.transform(X).shape
    ([4, 7], (200, 2))
    """

    def __init__(
        self,
        n_features_to_select: int | float = 50,
        *,
        estimator: Any = None,
        n_repeats: int = 5,
        resample: str = "folds",
        propagate: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.estimator = estimator
        self.n_repeats = n_repeats
        self.resample = resample
        self.propagate = propagate
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train the networks and rank the features.

        Parameters
        ----------
        X : array, SciPy matrix or table of shape (n_samples, n_features)
            Samples in rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Classes, binary labels, or numbers.  A `Dataset` without `y` uses its own.

        Returns
        -------
        self
        """
        from joblib import Parallel, delayed

        self._check_repeats()
        if self.resample not in RESAMPLING:
            raise InvalidParameterError(
                f"{type(self).__name__}: `resample` must be one of {RESAMPLING}, got"
                f" {self.resample!r}."
            )
        y = targets_or_labels(X, y)
        if y is None:
            raise InvalidInputError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y"
                f" is None.\n  SparseAutoencoderSelector selects features without y."
            )
        x = checked_samples(self, X, reset=True).values()
        self._n_selected(x.shape[1])
        target = np.asarray(y)
        check_consistent_length(x, target)
        if self.estimator is not None and not hasattr(self.estimator, "get_params"):
            raise InvalidParameterError(
                f"{type(self).__name__}: `estimator` must be an estimator, for example"
                f" SparseMLPClassifier(), or None; got {short(self.estimator)}."
            )
        model = _default_estimator(target) if self.estimator is None else self.estimator
        seed = draw_root(self.random_state)
        parts = (
            training_rows(target, self.n_repeats, derive_generator(seed, "folds"))
            if self.resample == "folds"
            else [np.arange(x.shape[0])] * self.n_repeats
        )
        if self.n_jobs is not None:
            threads_for(self.n_jobs, 1)  # raises if it is not a number of processes
        strengths = Parallel(n_jobs=self.n_jobs)(
            delayed(_strength)(
                model, x, target, rows, derive_seed(seed, "repeat", number), self.propagate
            )
            for number, rows in enumerate(parts)
        )
        self._set_strengths(np.stack(strengths))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def training_rows(y: Array, n_parts: int, rng: np.random.Generator) -> list[Array]:
    """Return the training rows of every fold.

    Folds are stratified by class, and a sample that is alone in its class is never left out.  With
    fewer than four samples per fold, or a single fold, every fold has all rows.

    Examples
    --------
    >>> [rows.tolist() for rows in training_rows(np.array([0] * 9), 2, np.random.default_rng(0))]
    [[0, 5, 6, 8], [1, 2, 3, 4, 7]]
    """
    rows = np.arange(len(y))
    if n_parts == 1 or rows.size < 4 * n_parts:
        return [rows] * n_parts
    codes = np.zeros(rows.size, dtype=np.int64)
    if y.ndim == 1 and type_of_target(y) in ("binary", "multiclass"):
        codes = np.unique(y, return_inverse=True)[1].reshape(-1)
    part = np.full(rows.size, -1)
    dealt = 0
    for code in np.unique(codes):
        members = rng.permutation(rows[codes == code])
        if members.size > 1:
            part[members] = (dealt + np.arange(members.size)) % n_parts
            dealt += members.size
    return [rows[part != number] for number in range(n_parts)]


def _default_estimator(y: Array) -> Any:
    from ratoon.estimators.classifier import SparseMLPClassifier
    from ratoon.estimators.regressor import SparseMLPRegressor

    kind = type_of_target(y, input_name="y")
    make = SparseMLPRegressor if kind.startswith("continuous") else SparseMLPClassifier
    # A narrow layer concentrates the evidence in few weights.  Strong weight decay shrinks weights
    # of useless features, and rewiring removes their connections.
    return make(
        (50,),
        epsilon=10.0,
        evolution=SET(0.3, grown="zero", until=0.8),
        solver="sgd",
        learning_rate_init=0.01,
        weight_decay=0.3,
        batch_size=max(10, len(y) // 50),
        max_iter=60,
        output_init="he",
        clip=3.0,
    )


def _strength(model: Any, x: Any, y: Array, rows: Array, seed: int, propagate: bool) -> Array:
    fitted = clone(model)
    if "random_state" in fitted.get_params():
        fitted.set_params(random_state=seed % 2**32)
    with warnings.catch_warnings():
        # Features that are constant in a fold have strength 0 there.
        warnings.simplefilter("ignore", ConstantFeatureWarning)
        # With few features the layers of the default network are full.
        warnings.simplefilter("ignore", RewiringHasNoEffectWarning)
        fitted.fit(x[rows], y[rows])
    if hasattr(fitted, "feature_strength"):
        return np.asarray(fitted.feature_strength(propagate=propagate), dtype=np.float64)
    found = getattr(fitted, "feature_importances_", None)
    if found is None:
        raise InvalidParameterError(
            f"`estimator` must have `feature_importances_` once it is fitted;"
            f" {type(fitted).__name__} does not have it."
        )
    return np.asarray(found, dtype=np.float64)


# ------------------------------------------------------------------------------ stability


def top_features(strength: Array, k: int) -> NDArray[np.int64]:
    """Return the ``k`` strongest features, strongest first; ties in the order of the features.

    Examples
    --------
    >>> top_features(np.array([1.0, 3.0, 3.0, 2.0]), 3).tolist()
    [1, 2, 3]
    """
    return np.argsort(-np.asarray(strength), kind="stable")[:k]


def selection_frequency(strengths: Array, k: int) -> NDArray[np.float64]:
    """Return the fraction of rankings in which every feature is among the first ``k``.

    Examples
    --------
    >>> selection_frequency(np.array([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0]]), 2).tolist()
    [1.0, 0.5, 0.5]
    """
    chosen = np.zeros(strengths.shape)
    for row, strength in zip(chosen, strengths, strict=True):
        row[top_features(strength, k)] = 1.0
    return np.asarray(chosen.mean(axis=0))


def stability_index(strengths: Array, k: int) -> float:
    """Return the stability of selecting ``k`` features (Nogueira et al., JMLR 18, 2018).

    1 if all rankings have the same first k features, about 0 for random rankings.  NaN for a single
    ranking, or if all features are selected.

    Parameters
    ----------
    strengths : ndarray of shape (n_rankings, n_features)
        One ranking per row.
    k : int
        Number of features selected.

    Examples
    --------
    >>> stability_index(np.array([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]), 1)
    1.0
    >>> round(stability_index(np.array([[3.0, 2.0, 1.0, 0.0], [0.0, 1.0, 2.0, 3.0]]), 2), 3)
    -1.0
    """
    n_rankings, n_features = strengths.shape
    share = k / n_features
    if n_rankings < 2 or share >= 1.0:
        return float("nan")
    frequency = selection_frequency(strengths, k)
    variance = n_rankings / (n_rankings - 1) * frequency * (1.0 - frequency)
    return float(1.0 - variance.mean() / (share * (1.0 - share)))


# ------------------------------------------------------------------------------ directions


def directions(x: Any, y: Array, class_names: Sequence[str] | None) -> list[str]:
    """Return the direction of every feature: its highest class, or the sign of its correlation.

    Parameters
    ----------
    x : ndarray or SciPy matrix of shape (n_samples, n_features)
        Only the features of interest: they are made dense.
    y : ndarray of shape (n_samples,)
        Class codes, or a continuous target.
    class_names : sequence of str or None
        Names of the classes; None for a continuous target.

    Examples
    --------
    >>> x = np.array([[0.0, 5.0, 1.0], [1.0, 4.0, 1.0]])
    >>> directions(x, np.array([0, 1]), ["ill", "well"])
    ['highest in well', 'highest in ill', '']
    >>> directions(x, np.array([0.5, 1.5]), None)
    ['rises', 'falls', '']
    """
    dense = wrap(x).dense().astype(np.float64)
    varies = np.ptp(dense, axis=0) > 0
    if class_names is None:
        slope = (dense - dense.mean(axis=0)).T @ (y - y.mean())
        words = np.where(slope > 0, "rises", np.where(slope < 0, "falls", ""))
        return [str(word) if moves else "" for word, moves in zip(words, varies, strict=True)]
    present = np.unique(y)
    means = np.stack([dense[y == code].mean(axis=0) for code in present])
    names = [f"highest in {class_names[present[k]]}" for k in means.argmax(axis=0)]
    return [name if moves else "" for name, moves in zip(names, varies, strict=True)]
