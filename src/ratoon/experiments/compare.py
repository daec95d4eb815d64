"""Compare ratoon with FixProb and classical pipelines on the same splits.

All scaling, selection and tuning use only training rows.  Differences are tested with a paired t
test corrected for the overlap of training sets (Nadeau and Bengio, Machine Learning 52, 2003);
without this correction, repeated cross-validation finds differences where there are none.  A run
on permuted labels gives the level of chance: a method clearly above it there has used test rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import scipy.stats
import sklearn
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError, InvalidParameterError, near
from ratoon.experiments.fan_out import fan_out
from ratoon.experiments.rivals import IncrementalWrapper, ProximalSVM
from ratoon.samples.groups import group_codes, grouped_folds

Makers = Mapping[str, Callable[[int], Any]]

# From scikit-learn 1.8 on, `l1_ratio` is enough and `penalty` is deprecated.
_RELEASE = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
_ELASTIC = {"penalty": "elasticnet"} if _RELEASE < (1, 8) else {}


def classical(n_features: int) -> dict[str, Callable[[int], Any]]:
    """Return functions that make the classical pipelines; each takes a seed."""
    k = min(200, n_features)
    return {
        "ridge": lambda seed: make_pipeline(
            StandardScaler(), RidgeClassifierCV(alphas=np.logspace(-1, 5, 13))
        ),
        "l1 logistic": lambda seed: make_pipeline(
            StandardScaler(),
            LogisticRegression(
                **_ELASTIC,
                l1_ratio=1.0,
                solver="saga",
                C=0.3,
                max_iter=200,
                tol=1e-3,
                random_state=seed,
            ),
        ),
        f"ANOVA {k} + SVM": lambda seed: make_pipeline(
            StandardScaler(), SelectKBest(f_classif, k=k), LinearSVC(random_state=seed)
        ),
        "random forest": lambda seed: RandomForestClassifier(300, random_state=seed),
        "largest class": lambda seed: DummyClassifier(strategy="most_frequent"),
    }


TWO_PHASE: dict[str, Callable[[int], Any]] = {
    "mrPSVM": lambda seed: ProximalSVM(random_state=seed),
    "IWSS": lambda seed: IncrementalWrapper(random_state=seed),
}
"""The two-phase methods that the paper quotes; each function takes a seed."""

_SHORT = ("ridge", "l1", "svm", "forest", "largest")
"""Short names of the pipelines of `classical`, in their order."""


def rivals(names: Sequence[str] | None, n_features: int) -> dict[str, Callable[[int], Any]]:
    """Return functions that make the named methods; each takes a seed.

    Parameters
    ----------
    names : sequence of str, optional
        Of ``ridge``, ``l1``, ``svm``, ``forest``, ``largest``, ``mrPSVM`` and ``IWSS``, or ``all``.
        By default the pipelines of `classical`.
    n_features : int
        Number of features of the samples.

    Examples
    --------
    >>> list(rivals(["ridge", "iwss"], 50))
    ['ridge', 'IWSS']
    """
    pipelines = classical(n_features)
    if names is None:
        return pipelines
    makers = {**pipelines, **TWO_PHASE}
    by_name = dict(zip((*_SHORT, *map(str.lower, TWO_PHASE)), makers, strict=True))
    wanted = [name.strip().lower() for name in names]
    if wanted == ["all"]:
        return makers
    if unknown := [name for name in wanted if name not in by_name]:
        known = (*_SHORT, *TWO_PHASE, "all")
        raise InvalidParameterError(
            f"there is no method {unknown[0]!r} to compare with; there are {', '.join(known)}."
            f"{near(unknown[0], known)}"
        )
    return {by_name[name]: makers[by_name[name]] for name in wanted}


def after(make_step: Callable[[], Any], methods: Makers) -> dict[str, Callable[[int], Any]]:
    """Return the methods with a transformer before each of them, fitted on the training rows.

    Examples
    --------
    >>> list(after(StandardScaler, {"ridge": lambda seed: RidgeClassifierCV()})["ridge"](0).steps)
    [('standardscaler', StandardScaler()), ('ridgeclassifiercv', RidgeClassifierCV())]
    """

    def preceded(make: Callable[[int], Any]) -> Callable[[int], Any]:
        return lambda seed: make_pipeline(make_step(), make(seed))

    return {name: preceded(make) for name, make in methods.items()}


LEAST_SPLITS = 5
"""With fewer splits `Comparison.against` gives no p value."""


@dataclass(frozen=True)
class Comparison:
    """Scores of every method on every split and on permuted labels."""

    accuracy: dict[str, Array]
    balanced: dict[str, Array]
    permuted: dict[str, Array]
    test_share: float
    n_permutations: int = 1

    def on_permuted(self, name: str) -> tuple[float, float | None] | None:
        """Return the mean accuracy on permuted labels, and its deviation over the permutations.

        None without permutations; there is no deviation with one.

        Examples
        --------
        >>> permuted = {"a": np.array([0.4, 0.6, 0.6, 0.8])}
        >>> mean, deviation = Comparison({}, {}, permuted, 0.5, 2).on_permuted("a")
        >>> round(mean, 2), round(deviation, 2)
        (0.6, 0.14)
        """
        if name not in self.permuted:
            return None
        means = self.permuted[name].reshape(self.n_permutations, -1).mean(axis=1)
        spread = float(means.std(ddof=1)) if self.n_permutations > 1 else None
        return float(means.mean()), spread

    def against(self, first: str, other: str) -> tuple[float, float]:
        """Return the mean difference in accuracy and its corrected two-sided p value.

        The p value is NaN with fewer than `LEAST_SPLITS` splits, and if all splits have the same
        difference, except 0.

        Examples
        --------
        >>> scores = {"a": np.array([9, 8, 9, 9, 8]) / 10, "b": np.array([6, 6, 5, 7, 6]) / 10}
        >>> difference, p = Comparison(scores, scores, {}, 0.2).against("a", "b")
        >>> round(difference, 2), p < 0.05
        (0.26, True)
        """
        mean, error, n = self._difference(first, other)
        if error == 0.0:  # equal but for rounding: there is nothing to estimate a spread from
            return mean, 1.0 if abs(mean) <= 1e-12 else float("nan")
        return mean, float(2.0 * scipy.stats.t.sf(abs(mean / error), n - 1))

    def interval(self, first: str, other: str) -> tuple[float, float, float]:
        """Return the mean difference in accuracy and the limits of its 95 % interval.

        The limits are NaN where `against` has no p value, and at most 1 from 0.

        Examples
        --------
        >>> scores = {"a": np.array([9, 8, 9, 9, 8]) / 10, "b": np.array([6, 6, 5, 7, 6]) / 10}
        >>> [round(x, 2) for x in Comparison(scores, scores, {}, 0.2).interval("a", "b")]
        [0.26, 0.09, 0.43]
        """
        mean, error, n = self._difference(first, other)
        if not error > 0.0:
            return mean, float("nan"), float("nan")
        half = float(scipy.stats.t.ppf(0.975, n - 1)) * error
        return mean, max(mean - half, -1.0), min(mean + half, 1.0)

    def _difference(self, first: str, other: str) -> tuple[float, float, int]:
        """Return the mean difference, its corrected standard error and the number of splits."""
        differences = self.accuracy[first] - self.accuracy[other]
        mean, n = float(differences.mean()), differences.size
        if n < LEAST_SPLITS:
            return mean, float("nan"), n
        spread = float(differences.std(ddof=1))
        overlap = 1.0 / n + self.test_share / (1.0 - self.test_share)
        return mean, 0.0 if spread <= 1e-12 else spread * float(np.sqrt(overlap)), n


def compare(
    x: Array,
    y: Array,
    methods: Makers,
    *,
    n_splits: int = 5,
    n_repeats: int = 2,
    n_permutations: int = 1,
    seed: int = 0,
    n_jobs: int | None = None,
    tell: Callable[[str], None] = lambda text: None,
    groups: Any = None,
    begin: Callable[[int], None] = lambda n_fits: None,
) -> Comparison:
    """Score every method by repeated stratified cross-validation.

    Parameters
    ----------
    x, y : ndarray
        Samples, and their classes as numbers from 0.
    methods : mapping of str to callable
        Functions that make unfitted estimators; each takes a seed.
    n_splits, n_repeats : int
        Number of folds, and of repetitions with new folds.
    n_permutations : int
        Rounds of ``n_splits`` folds with labels in random order.
    seed : int
        Seed of the folds, the permutations and the methods.
    n_jobs : int, optional
        Number of fits at the same time (see `fan_out`).
    tell : callable
        Called with a line of text after each fit.
    groups : array-like, optional
        Group of every sample, such as its patient or batch; samples of a group are in the same
        fold.
    begin : callable
        Called with the number of fits before the first.
    """
    counts = np.bincount(y)
    if counts[counts > 0].min() < n_splits:
        raise InvalidInputError(
            f"the smallest class has {counts[counts > 0].min()} samples, too few for {n_splits}"
            f" folds; set --folds to this number or less."
        )
    codes = None if groups is None else group_codes(groups, len(y))[0]
    if codes is not None and codes.max() + 1 < n_splits:
        raise InvalidInputError(
            f"there are {codes.max() + 1} groups, too few for {n_splits} folds; set --folds to"
            f" this number or less."
        )
    splits = _splits(x, y, n_splits, n_repeats, n_permutations, seed, codes)
    n_real = n_splits * n_repeats
    begin(len(splits) * len(methods))
    planned = [(number, name) for number in range(len(splits)) for name in methods]
    scores = fan_out(
        _scores,
        x,
        ((methods[name](splits[number].seed), splits[number]) for number, name in planned),
        n_jobs=n_jobs,
    )
    accuracy: dict[str, list[float]] = {name: [] for name in methods}
    balanced: dict[str, list[float]] = {name: [] for name in methods}
    permuted: dict[str, list[float]] = {name: [] for name in methods}
    for (number, name), (plain_accuracy, balanced_accuracy) in zip(planned, scores, strict=True):
        if number < n_real:
            accuracy[name].append(plain_accuracy)
            balanced[name].append(balanced_accuracy)
            tell(f"split {number + 1} of {n_real}: {name} {plain_accuracy:.3f}")
        else:
            permuted[name].append(plain_accuracy)
            tell(f"permuted labels, split {number + 1 - n_real}: {name} {plain_accuracy:.3f}")
    return Comparison(
        {name: np.array(values) for name, values in accuracy.items()},
        {name: np.array(values) for name, values in balanced.items()},
        {name: np.array(values) for name, values in permuted.items() if values},
        1.0 / n_splits,
        max(n_permutations, 1),
    )


@dataclass(frozen=True)
class _Split:
    """Training and test rows, with labels that may be permuted."""

    y: Array
    train: Array
    test: Array
    seed: int
    groups: Array | None = None


def _splits(
    x: Array,
    y: Array,
    n_splits: int,
    n_repeats: int,
    n_permutations: int,
    seed: int,
    groups: Array | None = None,
) -> list[_Split]:
    """Return the splits with the true labels, followed by those with permuted labels."""
    if groups is not None:
        return _grouped_splits(y, n_splits, n_repeats, n_permutations, seed, groups)
    folds = RepeatedStratifiedKFold(n_splits=n_splits, n_repeats=n_repeats, random_state=seed)
    splits = [
        _Split(y, train, test, seed + number)
        for number, (train, test) in enumerate(folds.split(x, y))
    ]
    rng = np.random.default_rng(seed)
    for number in range(n_permutations):
        shuffled = rng.permutation(y)
        once = RepeatedStratifiedKFold(n_splits=n_splits, n_repeats=1, random_state=seed + number)
        splits += [_Split(shuffled, train, test, seed) for train, test in once.split(x, shuffled)]
    return splits


def _grouped_splits(
    y: Array, n_splits: int, n_repeats: int, n_permutations: int, seed: int, groups: Array
) -> list[_Split]:
    splits: list[_Split] = []
    rng = np.random.default_rng(seed)
    for number in range(n_repeats + n_permutations):
        is_real = number < n_repeats
        labels = y if is_real else rng.permutation(y)
        folds = grouped_folds(groups, labels, n_splits, np.random.default_rng([seed, number]))
        for fold in range(n_splits):
            train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            splits.append(_Split(labels, train, test, seed + len(splits) * is_real, groups))
    return splits


def _scores(x: Array, model: Any, split: _Split) -> tuple[float, float]:
    """Fit on the training rows; return accuracy and balanced accuracy on the test rows."""
    groups = None if split.groups is None else split.groups[split.train]
    fitted = _fitted(model, x[split.train], split.y[split.train], groups)
    predicted = fitted.predict(x[split.test])
    truth = split.y[split.test]
    return float(np.mean(predicted == truth)), float(_balanced(truth, predicted))


def _fitted(model: Any, x: Array, y: Array, groups: Array | None = None) -> Any:
    with warnings.catch_warnings():
        # Warnings on constant features and early stopping; the score shows the effect.
        warnings.simplefilter("ignore")
        takes_groups = "groups" in signature(model.fit).parameters
        if groups is not None and takes_groups and np.unique(groups).size > 1:
            return model.fit(x, y, groups=groups)
        return model.fit(x, y)


def _balanced(truth: Array, predicted: Array) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class predicted but absent from a small fold
        return balanced_accuracy_score(truth, predicted)
