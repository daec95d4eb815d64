"""Nested cross-validation: inner folds of the training rows choose the settings.

The outer folds test the whole procedure, including this choice.  A choice made on the test rows
would favour the method with the most settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.model_selection import GridSearchCV, StratifiedKFold

from ratoon.experiments.compare import Makers

Grid = Mapping[str, Sequence[Any]]


def classical_grids(n_features: int) -> dict[str, Grid]:
    """Return the settings to choose from for the methods of `rivals`.

    Ridge has none: it chooses its penalty by leave-one-out cross-validation.  IWSS has none either,
    and mrPSVM chooses the number of features itself.
    """
    sizes = sorted({min(k, n_features) for k in (20, 200, 1000)})
    return {
        "l1 logistic": {"logisticregression__C": (0.03, 0.3, 3.0)},
        f"ANOVA {min(200, n_features)} + SVM": {
            "selectkbest__k": sizes,
            "linearsvc__C": (0.001, 0.03, 1.0),
        },
        "random forest": {"max_features": ("sqrt", 0.1)},
        "mrPSVM": {"nu": (0.001, 0.03, 1.0)},
    }


def nested(methods: Makers, grids: Mapping[str, Grid], *, n_inner: int = 3) -> Makers:
    """Return functions that make estimators which choose their settings by inner folds.

    Parameters
    ----------
    methods : mapping of str to callable
        Functions that make unfitted estimators; each takes a seed.
    grids : mapping of str to mapping
        Settings to choose from, by the name of the method.  Other methods are unchanged.
    n_inner : int
        Number of inner folds, drawn with the seed.

    Examples
    --------
    >>> from ratoon.experiments.compare import classical
    >>> makers = nested(classical(50), classical_grids(50))
    >>> [type(makers[name](0)).__name__ for name in ("l1 logistic", "largest class")]
    ['GridSearchCV', 'DummyClassifier']
    """

    def searching(name: str) -> Any:
        def make(seed: int) -> GridSearchCV:
            folds = StratifiedKFold(n_inner, shuffle=True, random_state=seed)
            return GridSearchCV(methods[name](seed), dict(grids[name]), cv=folds)

        return make

    return {name: searching(name) if name in grids else make for name, make in methods.items()}
