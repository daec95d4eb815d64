"""Rankings of features: ratoon's selectors and the usual ones, each a score per feature."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import f_classif, mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from ratoon import SparseAutoencoderSelector, SparseFeatureSelector, SparseMLPClassifier
from ratoon.estimators.selectors import rewired_network

Array = NDArray[Any]


def halves(x: Array, y: Array, seed: int) -> Array:
    return SparseFeatureSelector(random_state=seed).fit(x, y).strengths_.mean(axis=0)


def one_model(x: Array, y: Array, seed: int) -> Array:
    return SparseMLPClassifier(random_state=seed).fit(x, y).feature_importances_


def first_layer(x: Array, y: Array, seed: int) -> Array:
    """Rank by the definition of `feature_importances_` in earlier versions."""
    return SparseMLPClassifier(random_state=seed).fit(x, y).feature_strength()


def rewired(x: Array, y: Array, seed: int) -> Array:
    """Rank by the definition of `SparseFeatureSelector` in earlier versions."""
    how = {"n_repeats": 5, "resample": "folds", "propagate": True, "random_state": seed}
    return SparseFeatureSelector(estimator=rewired_network(y), **how).fit(x, y).strength_


def autoencoder(x: Array, y: Array, seed: int) -> Array:
    del y
    return SparseAutoencoderSelector(random_state=seed).fit(x).strength_


def anova(x: Array, y: Array, seed: int) -> Array:
    del seed
    return np.nan_to_num(f_classif(x, y)[0])  # constant features have no F


def l1_logistic(x: Array, y: Array, seed: int) -> Array:
    model = LogisticRegression(
        l1_ratio=1.0, solver="saga", C=0.3, max_iter=200, tol=1e-3, random_state=seed
    )
    return np.abs(model.fit(StandardScaler().fit_transform(x), y).coef_).sum(axis=0)


def forest(x: Array, y: Array, seed: int) -> Array:
    return RandomForestClassifier(300, random_state=seed).fit(x, y).feature_importances_


def mutual_information(x: Array, y: Array, seed: int) -> Array:
    return mutual_info_classif(x, y, random_state=seed)


def chance(x: Array, y: Array, seed: int) -> Array:
    del y
    return np.random.default_rng(seed).random(x.shape[1])


METHODS: dict[str, Callable[[Array, Array, int], Array]] = {
    "feature_importances_": one_model,
    "mean over 10 halves": halves,
    "before: weights of the first layer": first_layer,
    "before: rewired networks": rewired,
    "SparseAutoencoderSelector (no labels)": autoencoder,
    "ANOVA F": anova,
    "l1 logistic": l1_logistic,
    "random forest": forest,
    "mutual information": mutual_information,
    "chance": chance,
}

SHOWN = (
    "feature_importances_",
    "mean over 10 halves",
    "before: weights of the first layer",
    "before: rewired networks",
    "ANOVA F",
    "l1 logistic",
    "random forest",
)
"""Methods that are run unless others are named."""


def ranked(method: str, x: Array, y: Array, seed: int) -> Array:
    """Return the features, best first."""
    with warnings.catch_warnings():
        # Solvers that stop early and constant features: the ranking shows what comes of it.
        warnings.simplefilter("ignore")
        return np.argsort(-METHODS[method](x, y, seed), kind="stable")
