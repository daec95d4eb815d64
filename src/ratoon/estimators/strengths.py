"""Strengths of features: how strongly each is associated with the target, for guided starts.

Only training rows are used.  Selecting features on all rows before a split leaks information; this
does not, because it happens inside `fit`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.feature_selection import mutual_info_classif, mutual_info_regression

from ratoon.arrays import Array
from ratoon.committee import f_statistic, lasso_strength
from ratoon.errors import InvalidInputError
from ratoon.samples.in_memory import wrap

Strengths = NDArray[np.float64]

FLOOR = 0.01
"""Added to every strength, relative to the mean, so that every feature can be drawn."""

_FEATURES_AT_ONCE = 1024


def _f(x: Any, targets: Array, weights: Array, *, has_classes: bool) -> Strengths:
    del has_classes
    columns = x.tocsc() if scipy.sparse.issparse(x) else x
    parts = []
    for first in range(0, x.shape[1], _FEATURES_AT_ONCE):
        part = columns[:, first : first + _FEATURES_AT_ONCE]
        part = part.tocsr() if scipy.sparse.issparse(part) else np.asarray(part, dtype=np.float64)
        parts.append(f_statistic(part, targets, weights))
    return np.concatenate(parts)


def _f_squared(x: Any, targets: Array, weights: Array, *, has_classes: bool) -> Strengths:
    return np.square(_f(x, targets, weights, has_classes=has_classes))


def _mutual_info(x: Any, targets: Array, weights: Array, *, has_classes: bool) -> Strengths:
    counted = np.flatnonzero(weights > 0)
    measure: Any = mutual_info_classif if has_classes else mutual_info_regression
    columns = targets[:, :1] if has_classes and targets.shape[1] == 2 else targets
    # Ties are broken at random, with a fixed seed.
    return np.asarray(
        sum(measure(x[counted], column[counted], random_state=0) for column in columns.T)
    )


def _l1(x: Any, targets: Array, weights: Array, *, has_classes: bool) -> Strengths:
    del has_classes
    counted = np.flatnonzero(weights > 0)
    rows = x[counted]
    rows = scipy.sparse.csr_array(rows) if scipy.sparse.issparse(x) else np.asarray(rows)
    return lasso_strength(rows, targets[counted], weights[counted])


MEASURES: dict[str, Callable[..., Strengths]] = {
    "f": _f,
    "f_squared": _f_squared,
    "mutual_info": _mutual_info,
    "l1": _l1,
}
"""F statistic and its square; mutual information; mean weight along the path of the lasso."""


def is_strength(start: Any) -> bool:
    """Whether a ``start`` gives strengths of features: a measure, numbers, or a network.

    Examples
    --------
    >>> is_strength("f"), is_strength([1.0, 2.0]), is_strength("exact")
    (True, True, False)
    """
    return start in MEASURES if isinstance(start, str) else start is not None


def strengths(
    how: Any, x: Any, targets: Array, weights: Array | None, *, has_classes: bool
) -> Strengths:
    """Return the strength of every feature, with mean 1 or a little above.

    Parameters
    ----------
    how : {"f", "mutual_info", "l1"}, array-like, or fitted estimator
        A measure, the strengths themselves, or a network whose connections are measured.
    x : Samples, ndarray or sparse matrix
        Training rows.
    targets : ndarray of shape (n_samples, n_outputs)
        Encoded, one column per class where there are classes.
    weights : ndarray, optional
        Weight of each row; rows of weight 0 are not used.
    has_classes : bool
        Whether targets encode classes.

    Examples
    --------
    >>> x = np.array([[0.0, 1.0], [0.1, -1.0], [5.0, 1.0], [5.1, -1.0]])
    >>> y = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> strengths("f", x, y, None, has_classes=True).round(2).tolist()
    [2.01, 0.01]
    """
    samples = wrap(x)
    n_features = samples.n_features
    if isinstance(how, str):
        if samples.is_on_disk:
            raise InvalidInputError(
                f"`start={how!r}` needs all samples of a feature at once, but they are on"
                f" disk.\n"
                f"  Give the strengths themselves, one number per feature."
            )
        counted = (
            np.ones(samples.n_rows) if weights is None else np.asarray(weights, dtype=np.float64)
        )
        found = MEASURES[how](samples.values(), targets, counted, has_classes=has_classes)
    elif hasattr(how, "feature_strength"):
        found = np.asarray(how.feature_strength(), dtype=np.float64)
    else:
        try:
            found = np.asarray(how, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(
                f"strengths must be {n_features} finite numbers, one per feature: {error}."
            ) from error
    if found.shape != (n_features,) or not (np.isfinite(found).all() and (found >= 0).all()):
        raise InvalidInputError(
            f"strengths must be {n_features} finite numbers, one per feature and none below 0; got"
            f" shape {found.shape}."
        )
    mean = float(found.mean())
    return found / mean + FLOOR if mean > 0 else np.ones(n_features)
