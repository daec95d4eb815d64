"""Alternative methods: each takes a split and returns classes and probabilities.

All but trees see z-scores of the training rows; whatever is tuned is tuned on training rows only.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from quality.sets import Split, standardised

Array = NDArray[Any]
Answer = tuple[Array, Array | None]

PENALTIES = np.logspace(-2, 6, 17)
STRENGTHS_OF_L1 = (0.03, 0.1, 0.3, 1.0, 10.0)
NUMBERS_KEPT = (20, 50, 100, 200, 500, 2000)
BOOSTING = {"n_estimators": 200, "learning_rate": 0.1}
FEATURES_PER_TREE = 300


def ridge(parts: Split, seed: int) -> Answer:
    """Ridge on all features, its penalty by leave-one-out."""
    del seed
    return _ridge(standardised(parts))


def f_weighted_ridge(parts: Split, seed: int) -> Answer:
    """Ridge with prior variance 0.75 + 0.25 F^2 / mean(F^2) per feature; F of training rows."""
    del seed
    z = standardised(parts)
    f = np.minimum(strength(z.x, z.y), 1e4)
    factors = np.sqrt(0.75 + 0.25 * f**2 / np.mean(f**2))
    return _ridge(z._replace(x=z.x * factors, x_test=z.x_test * factors))


def l1(parts: Split, seed: int) -> Answer:
    """Logistic regression with an l1 penalty, tuned by inner folds; one against the rest."""
    model: Any = LogisticRegression(
        l1_ratio=1.0, solver="liblinear", max_iter=200, random_state=seed
    )
    name = "C"
    if parts.y.max() > 1:
        model, name = OneVsRestClassifier(model), "estimator__C"
    return _tuned(model, {name: STRENGTHS_OF_L1}, standardised(parts))


def two_phase(parts: Split, seed: int) -> Answer:
    """First choose features by analysis of variance, then a linear SVM; both tuned together."""
    model = make_pipeline(SelectKBest(f_classif), LinearSVC(random_state=seed, max_iter=2000))
    kept = [k for k in NUMBERS_KEPT if k <= parts.x.shape[1]]
    grid = {"selectkbest__k": kept, "linearsvc__C": [0.01, 1.0]}
    return _tuned(model, grid, standardised(parts))


def linear_svc(parts: Split, seed: int) -> Answer:
    """Return a linear support vector machine with default parameters."""
    return _answer(LinearSVC(random_state=seed, max_iter=2000), standardised(parts))


def forest(parts: Split, seed: int) -> Answer:
    """Five hundred trees."""
    return _answer(RandomForestClassifier(500, random_state=seed, n_jobs=1), parts)


def lightgbm(parts: Split, seed: int) -> Answer:
    """LightGBM with `BOOSTING`; leaves of 5 rows, for of 20 a small set could not be split."""
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(
        **_boosting(parts),
        min_child_samples=5,
        random_state=seed,
        n_jobs=1,
        verbose=-1,
        deterministic=True,
    )
    return _answer(model, parts)


def xgboost(parts: Split, seed: int) -> Answer:
    """XGBoost with `BOOSTING`, by histograms."""
    from xgboost import XGBClassifier

    model = XGBClassifier(**_boosting(parts), tree_method="hist", random_state=seed, n_jobs=1)
    return _answer(model, parts)


def _boosting(parts: Split) -> dict[str, Any]:
    return {**BOOSTING, "colsample_bytree": min(1.0, FEATURES_PER_TREE / parts.x.shape[1])}


def strength(z: Array, y: Array) -> Array:
    """Return the F of every feature; one that separates all rows gets the largest finite one."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f = f_classif(z, y)[0]
    largest = f[np.isfinite(f)].max(initial=1.0)
    f = np.where(np.isposinf(f), largest, f)
    return np.where(np.isfinite(f) & (z.std(axis=0) > 0), f, 0.0)


def _ridge(z: Split) -> Answer:
    model = RidgeClassifierCV(alphas=PENALTIES).fit(z.x, z.y)
    # Not calibrated: what a user gets who reads decisions as logits.
    return model.predict(z.x_test), _as_chances(model.decision_function(z.x_test))


def _tuned(model: Any, grid: dict[str, Any], z: Split) -> Answer:
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    return _answer(GridSearchCV(model, grid, cv=folds), z)


def _answer(model: Any, z: Split) -> Answer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(z.x, z.y)
        if hasattr(model, "predict_proba"):
            return model.predict(z.x_test), model.predict_proba(z.x_test)
        return model.predict(z.x_test), _as_chances(model.decision_function(z.x_test))


def _as_chances(decisions: Array) -> Array:
    if decisions.ndim == 1:
        decisions = np.stack((-decisions, decisions), axis=1)
    return np.asarray(softmax(decisions, axis=1))
