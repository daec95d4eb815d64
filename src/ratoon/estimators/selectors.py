"""Feature selectors: features ranked by their importance in several networks."""

from __future__ import annotations

import warnings
from inspect import signature
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ratoon.arrays import Array
from ratoon.committee import suits
from ratoon.committee.problem import MIN_SAMPLES
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.estimators.data import groups_of
from ratoon.estimators.parameters import short
from ratoon.estimators.threads import threads_for
from ratoon.evolution import SET, RewiringHasNoEffectWarning
from ratoon.explain import (
    Ranking,
    StableSelection,
    associations,
    complementary_halves,
    relative_strength,
    stable_selection,
)
from ratoon.explain.stability import THRESHOLD
from ratoon.rng import derive_generator, derive_seed, draw_root
from ratoon.samples.checked import checked_samples, targets_or_labels
from ratoon.samples.groups import (
    ConfoundedGroupsWarning,
    group_codes,
    grouped_folds,
    warn_if_confounded,
)
from ratoon.samples.in_memory import wrap
from ratoon.samples.statistics import ConstantFeatureWarning

_FEWEST_IN_HALF = 8

RESAMPLING = ("halves", "folds", "seeds")

LARGEST_N_REPEATS = 100_000


class StrengthSelector(SelectorMixin, BaseEstimator):
    """Base class: select the features with the largest mean strength over several networks."""

    n_features_to_select: Any
    n_repeats: Any

    def _set_strengths(self, strengths: Array, of_all: Array | None = None) -> None:
        """Set the fitted attributes from one row of strengths per network.

        Features are ranked by the strengths ``of_all`` samples, or else by their mean.
        """
        scaled = np.stack([relative_strength(row) for row in strengths])
        k = self._n_selected(scaled.shape[1])
        self.strengths_ = scaled
        self.strength_ = scaled.mean(axis=0) if of_all is None else relative_strength(of_all)
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
    """Select the most important features, and measure how stable the selection is.

    Features are ranked by `feature_importances_` of a model fitted to all samples; see
    `ratoon.explain.ranking`.  Further models are fitted to random halves of the samples, in
    complementary pairs.  How often a feature is among the first k in these halves shows how stable
    its selection is, and `stable_features` bounds the number of false ones.

    Selection uses the labels, so it belongs inside a pipeline: if features are selected on all
    samples, later test scores are too optimistic.

    Parameters
    ----------
    n_features_to_select : int or float, default=50
        Number of features to keep, or a fraction of them in (0, 1).
    estimator : estimator, optional
        Estimator to fit; once fitted it must have ``feature_importances_``.  By default a
        classifier or regressor, depending on `y`, solved in closed form; for other shapes of data
        than that is for, networks with one narrow hidden layer rewired by SET.
    n_repeats : int, default=10
        Number of models to fit to parts of the samples.
    resample : {"halves", "folds", "seeds"}, default="halves"
        Whether these are fitted to complementary halves of the samples, each to all but another
        fold, or all to all samples with different seeds.  Without halves, features are ranked by
        the mean over these models.
    propagate : bool, optional
        Rank by the strength of connections alone instead: of all layers (True) or of the first
        (False).  For estimators with ``feature_strength``.
    n_jobs : int, optional
        Number of models to fit in parallel, with joblib.
    random_state : int, generator or None, default=None
        An integer makes the result reproducible.

    Attributes
    ----------
    strength_ : ndarray of shape (n_features,)
        Importance of every feature; the sum is 1.
    strength_spread_ : ndarray of shape (n_features,)
        Standard deviation over the models.
    strengths_ : ndarray of shape (n_repeats, n_features)
        Normalised importances in every model.
    ranking_ : ndarray of shape (n_features,)
        1 for the most important feature, 2 for the next.
    support_ : ndarray of bool
        Which features are kept.
    selection_frequency_ : ndarray of shape (n_features,)
        Fraction of the models in which a feature is among those to keep.
    ranked_ : Ranking
        The features in their order, with statistics of all rows given.
    stability_ : float
        Agreement of the models (Nogueira et al., 2018): 1 is perfect, 0 is random.
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
    >>> X = np.random.default_rng(0).normal(size=(200, 130))
    >>> y = X[:, 4] + X[:, 7] > 0
    >>> selector = SparseFeatureSelector(2, random_state=0).fit(X, y)
    >>> selector.get_support(indices=True).tolist(), selector.transform(X).shape
    ([4, 7], (200, 2))
    >>> print(selector.stable_features())
    2 features are among the first 2 in at least 90% of 10 halves of the samples; expected number
    of false ones among them: at most 0.038
    """

    def __init__(
        self,
        n_features_to_select: int | float = 50,
        *,
        estimator: Any = None,
        n_repeats: int = 10,
        resample: str = "halves",
        propagate: bool | None = None,
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

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Fit the models and rank the features.

        Parameters
        ----------
        X : array, SciPy matrix or table of shape (n_samples, n_features)
            Samples in rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Classes, binary labels, or numbers.  A `Dataset` without `y` uses its own.
        groups : array-like of shape (n_samples,), optional
            Group of every sample, such as its patient or batch: halves and folds keep it together,
            and so does an estimator whose `fit` has this parameter.  By default those of the
            `Dataset`.

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
        seed = draw_root(self.random_state)
        named = groups_of(X, groups)
        codes = None if named is None else group_codes(named, len(target))[0]
        if codes is not None:
            warn_if_confounded(codes, class_codes(target), stacklevel=2)
        parts = self._parts(target, seed, codes)
        fewest = min(rows.size for rows in parts)
        has_halves = self.resample == "halves" and fewest < len(target)
        if has_halves:
            parts.append(np.arange(len(target)))
        model = self.estimator
        if model is None:
            model = _default_estimator(target, fewest, x)
        if self.n_jobs is not None:
            threads_for(self.n_jobs, 1)  # raises if it is not a number of processes
        strengths = Parallel(n_jobs=self.n_jobs)(
            delayed(_strength)(
                model, x, target, rows, derive_seed(seed, "repeat", number), self.propagate, codes
            )
            for number, rows in enumerate(parts)
        )
        if has_halves:
            self._set_strengths(np.stack(strengths[:-1]), strengths[-1])
        else:
            self._set_strengths(np.stack(strengths))
        self.ranked_ = labelled_ranking(self, x, target)
        self._n_halves = 2 * (self.n_repeats // 2) if has_halves else 0
        return self

    def _parts(self, target: Array, seed: int, groups: NDArray[np.int64] | None) -> list[Array]:
        """Return the rows that each model is fitted to."""
        if self.resample == "seeds":
            return [np.arange(len(target))] * self.n_repeats
        if self.resample == "folds":
            rng = derive_generator(seed, "folds")
            return training_rows(target, self.n_repeats, rng, groups)
        if len(target) < 2 * _FEWEST_IN_HALF:
            return [np.arange(len(target))] * self.n_repeats
        rng, codes = derive_generator(seed, "halves"), class_codes(target)
        parts = complementary_halves(codes, len(target), self.n_repeats, rng, groups)
        if codes is not None and any(np.unique(codes[rows]).size < 2 for rows in parts):
            if np.unique(codes).size < 2:
                return parts  # the estimator refuses a single class
            raise InvalidInputError(
                "halves of the groups have samples of one class only, so no model can be fitted to"
                ' them.\n  Use more or smaller groups, or resample="seeds", which leaves no sample'
                " out."
            )
        return parts

    def stable_features(self, threshold: float = THRESHOLD) -> StableSelection:
        """Return the features that are selected in most halves, with a bound on false ones.

        Parameters
        ----------
        threshold : float, default=0.9
            Fraction of the halves in which a feature must be among those to keep; above 0.5.

        Raises
        ------
        InvalidParameterError
            If models were not fitted to complementary halves, for which the bound is known.
        """
        check_is_fitted(self)
        n_halves = self._n_halves
        if n_halves < 2:
            raise InvalidParameterError(
                f"the bound on false selections needs complementary halves of at least"
                f" {2 * _FEWEST_IN_HALF} samples.\n"
                f'  Set `resample="halves"` and `n_repeats` to at least 2.'
            )
        frequency = selection_frequency(self.strengths_[:n_halves], self.n_features_)
        return stable_selection(
            frequency, k=self.n_features_, n_halves=n_halves, threshold=threshold
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def class_codes(y: Array) -> NDArray[np.int64] | None:
    """Return the class of every sample as a number; None if there are no classes."""
    if y.ndim != 1 or type_of_target(y) not in ("binary", "multiclass"):
        return None
    return np.asarray(np.unique(y, return_inverse=True)[1].reshape(-1), dtype=np.int64)


def training_rows(
    y: Array, n_parts: int, rng: np.random.Generator, groups: NDArray[np.int64] | None = None
) -> list[Array]:
    """Return the training rows of every fold.

    Folds are stratified by class, and a sample that is alone in its class is never left out.  With
    fewer than four samples per fold, or a single fold, every fold has all rows.  No group is in two
    folds; with fewer groups than folds, some folds leave out the same groups.

    Examples
    --------
    >>> [rows.tolist() for rows in training_rows(np.array([0] * 9), 2, np.random.default_rng(0))]
    [[0, 5, 6, 8], [1, 2, 3, 4, 7]]
    """
    rows = np.arange(len(y))
    if n_parts == 1 or rows.size < 4 * n_parts:
        return [rows] * n_parts
    known = class_codes(y)
    if groups is not None:
        part = grouped_folds(groups, known, n_parts, rng)
        n_folds = int(part.max()) + 1
        return [rows[part != number % n_folds] for number in range(n_parts)]
    codes = np.zeros(rows.size, dtype=np.int64) if known is None else known
    part = np.full(rows.size, -1)
    dealt = 0
    for code in np.unique(codes):
        members = rng.permutation(rows[codes == code])
        if members.size > 1:
            part[members] = (dealt + np.arange(members.size)) % n_parts
            dealt += members.size
    return [rows[part != number] for number in range(n_parts)]


def _default_estimator(y: Array, n_rows: int, x: Any) -> Any:
    """Return the estimator for fits to ``n_rows`` of the samples."""
    from ratoon.estimators.classifier import SparseMLPClassifier
    from ratoon.estimators.regressor import SparseMLPRegressor

    kind = type_of_target(y, input_name="y")
    make = SparseMLPRegressor if kind.startswith("continuous") else SparseMLPClassifier
    n_stored = x.nnz if scipy.sparse.issparse(x) else None
    if suits(max(n_rows, MIN_SAMPLES), x.shape[1], n_stored):
        return make(solver="ridge")
    return rewired_network(y)


def rewired_network(y: Array) -> Any:
    """Return a network trained step by step, for many samples or few features."""
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


def _strength(
    model: Any,
    x: Any,
    y: Array,
    rows: Array,
    seed: int,
    propagate: bool | None,
    groups: NDArray[np.int64] | None,
) -> Array:
    fitted = clone(model)
    if "random_state" in fitted.get_params():
        fitted.set_params(random_state=seed % 2**32)
    with warnings.catch_warnings():
        # Features that are constant in a fold have strength 0 there.
        warnings.simplefilter("ignore", ConstantFeatureWarning)
        # With few features the layers of the default network are full.
        warnings.simplefilter("ignore", RewiringHasNoEffectWarning)
        if groups is not None and "groups" in signature(fitted.fit).parameters:
            warnings.simplefilter("ignore", ConfoundedGroupsWarning)  # once, from the caller
            of_rows = groups[rows] if np.unique(groups[rows]).size > 1 else None
            fitted.fit(x[rows], y[rows], groups=of_rows)
        else:
            fitted.fit(x[rows], y[rows])
    if propagate is not None:
        if not hasattr(fitted, "feature_strength"):
            raise InvalidParameterError(
                f"`propagate={propagate}` ranks by the strength of connections, and"
                f" {type(fitted).__name__} has no `feature_strength`.\n  Leave it at None."
            )
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


# ------------------------------------------------------------------------- statistics of features


def labelled_ranking(selector: Any, x: Any, y: Array | None, class_names: Any = None) -> Ranking:
    """Return the ranking of a fitted selector with statistics of these rows.

    Parameters
    ----------
    selector : StrengthSelector
        Fitted.
    x : ndarray or SciPy matrix of shape (n_samples, n_features)
        Samples.
    y : ndarray, optional
        Classes, labels or numbers; without, there are no statistics.
    class_names : sequence of str, optional
        Names of the classes if ``y`` holds codes.
    """
    names = getattr(selector, "feature_names_in_", None)
    named = None if names is None else tuple(map(str, names))
    if y is None:
        return Ranking(selector.strength_, None, named, None, "without labels")
    codes = class_codes(y)
    if codes is None:
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        classes = None
    else:
        targets = np.eye(int(codes.max()) + 1)[codes]
        present = np.unique(y)
        classes = tuple(str(c if class_names is None else class_names[c]) for c in present)
    found = associations(wrap(x), targets, None, codes, seed=0)
    sampled = "" if found.n_rows == found.n_available else f"{found.n_rows:,} of "
    rows = f"on {sampled}the {found.n_available:,} rows given"
    return Ranking(selector.strength_, found, named, classes, rows)
