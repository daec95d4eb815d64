"""SparseFeatureSelector: features by the strength of their connections in trained networks."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.estimators.inputs import checked_samples
from ratoon.estimators.selector_base import StrengthSelector
from ratoon.evolution import SET
from ratoon.rng import derive_generator, derive_seed, draw_root
from ratoon.samples.statistics import ConstantFeatureWarning

RESAMPLING = ("folds", "seeds")


class SparseFeatureSelector(StrengthSelector):
    """Select the features that sparse networks connect to most strongly.

    Several networks are trained, on different parts of the samples or from different seeds.  The
    strength of a feature is what its connections carry on to the outputs: the magnitude of their
    weights times the strength of the neurons they lead to.  Features are ranked by the mean
    strength, and how far the networks agree is told by an index of stability.

    Selection looks at the labels, so it belongs inside a pipeline: chosen on all samples, features
    make any later test look better than it is.

    Parameters
    ----------
    n_features_to_select : int or float, default=50
        How many features to keep, at most all of them; or a fraction in (0, 1).
    estimator : estimator, optional
        What is trained: any with ``feature_strength`` or ``feature_importances_`` once fitted.
        By default one hidden layer rewired by SET, for classes or for numbers as `y` has it.
    n_repeats : int, default=5
        How many networks are trained.
    resample : {"folds", "seeds"}, default="folds"
        Whether each network leaves out another part of the samples, or all see all samples and
        differ by their seeds.
    propagate : bool, default=True
        Whether a connection counts by what becomes of it up to the outputs, or by its own weight
        only.
    n_jobs : int, optional
        Networks trained at the same time, through joblib.
    random_state : int, generator or None, default=None
        Same integer, same choice.

    Attributes
    ----------
    strength_ : ndarray of shape (n_features,)
        Mean share of every feature in the strength of all.
    strength_spread_ : ndarray of shape (n_features,)
        Standard deviation over the networks.
    strengths_ : ndarray of shape (n_repeats, n_features)
        Shares in every network.
    ranking_ : ndarray of shape (n_features,)
        1 for the strongest feature, 2 for the next.
    support_ : ndarray of bool
        Which features are kept.
    selection_frequency_ : ndarray of shape (n_features,)
        In which share of the networks a feature is among those to keep.
    stability_ : float
        Agreement of the networks (Nogueira et al., 2018): 1 is perfect, 0 is chance.
    n_features_ : int
        How many are kept.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    SparseAutoencoderSelector : Needs no labels.

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

    def fit(self, X: Any, y: Any) -> Self:
        """Train the networks and rank the features.

        Parameters
        ----------
        X : array, SciPy matrix or table of shape (n_samples, n_features)
            Samples in rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Classes, labels or numbers.

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
        if y is None:
            raise InvalidInputError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y"
                f" is None.\n  SparseAutoencoderSelector works without."
            )
        x = checked_samples(self, X, reset=True)
        self._n_chosen(x.shape[1])
        target = np.asarray(y)
        check_consistent_length(x, target)
        model = _default_estimator(target) if self.estimator is None else self.estimator
        seed = draw_root(self.random_state)
        parts = (
            left_in(target, self.n_repeats, derive_generator(seed, "folds"))
            if self.resample == "folds"
            else [np.arange(x.shape[0])] * self.n_repeats
        )
        strengths = Parallel(n_jobs=self.n_jobs)(
            delayed(_strength)(
                model, x, target, rows, derive_seed(seed, "repeat", number), self.propagate
            )
            for number, rows in enumerate(parts)
        )
        self._take_strengths(np.stack(strengths))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def left_in(y: Array, n_parts: int, rng: np.random.Generator) -> list[Array]:
    """Return the rows that stay when one part after the other is left out.

    Every class is dealt out evenly, and none of its samples is left out where it has only one;
    with fewer than four samples per part, or a single part, all rows stay.

    Examples
    --------
    >>> [rows.tolist() for rows in left_in(np.array([0] * 9), 2, np.random.default_rng(0))]
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
    # A narrow layer, so that evidence gathers in few weights; strong decay, so that what is not
    # learnt fades; rewiring, so that connections leave features that faded.
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
        # Features that are constant in a part have strength 0 there; that says it.
        warnings.simplefilter("ignore", ConstantFeatureWarning)
        fitted.fit(x[rows], y[rows])
    if hasattr(fitted, "feature_strength"):
        return np.asarray(fitted.feature_strength(propagate=propagate), dtype=np.float64)
    found = getattr(fitted, "feature_importances_", None)
    if found is None:
        raise InvalidParameterError(
            f"`estimator` must have `feature_importances_` once it is fitted;"
            f" {type(fitted).__name__} has none."
        )
    return np.asarray(found, dtype=np.float64)
