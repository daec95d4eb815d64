"""Nested cross-validation: settings are chosen by inner folds, inside the training rows.

The outer folds then judge the whole procedure, choice included.  A choice made on the rows that
judge would flatter whoever has the most settings to choose from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.model_selection import GridSearchCV, StratifiedKFold

from ratoon.experiments.compare import Makers

Grid = Mapping[str, Sequence[Any]]


def classical_grids(n_features: int) -> dict[str, Grid]:
    """Return what may be chosen for the pipelines of `classical`.

    Ridge is not among them: it chooses its penalty itself, by leaving out one sample at a time.
    """
    sizes = sorted({min(k, n_features) for k in (20, 200, 1000)})
    return {
        "l1 logistic": {"logisticregression__C": (0.03, 0.3, 3.0)},
        f"ANOVA {min(200, n_features)} + SVM": {
            "selectkbest__k": sizes,
            "linearsvc__C": (0.001, 0.03, 1.0),
        },
        "random forest": {"max_features": ("sqrt", 0.1)},
    }


def nested(methods: Makers, grids: Mapping[str, Grid], *, n_inner: int = 3) -> Makers:
    """Return makers whose estimators choose their settings themselves.

    Parameters
    ----------
    methods : mapping of str to callable
        Makers of unfitted estimators; each takes a seed.
    grids : mapping of str to mapping
        Settings to choose from, by the name of the method.  Methods without stay as they are.
    n_inner : int
        Inner folds, drawn from the seed.

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
