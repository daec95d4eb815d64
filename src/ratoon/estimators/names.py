"""Samples brought to the features an estimator was trained on, by name."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from ratoon.datasets import Alignment, Dataset, align, read_id_map
from ratoon.errors import InvalidInputError


class FeatureCoverageWarning(UserWarning):
    """Some features of training are missing, and stand in by their mean."""


def align_samples(
    estimator: Any, X: Any, *, id_map: Any = None, min_coverage: float
) -> tuple[Dataset, Alignment]:
    """Return samples with the features of training in their order, and how they were matched.

    A feature that is missing gets its mean over the training samples, which after standardisation
    is 0; it gets 0 where the estimator does not centre its features.
    """
    known = getattr(estimator, "feature_names_in_", None)
    if known is None:
        raise InvalidInputError(
            f"this {type(estimator).__name__} was fitted without names of features, so there is"
            f" nothing to match by.\n  Fit it on a table whose columns have names."
        )
    if id_map is not None and not isinstance(id_map, Mapping):
        id_map = read_id_map(Path(id_map))
    return align(
        named_samples(X),
        [str(name) for name in known],
        id_map=id_map,
        min_coverage=min_coverage,
        fill=estimator.network_.scaling.shift,
    )


def filling(estimator: Any) -> str:
    """Say what a feature gets that is missing.

    Examples
    --------
    >>> from ratoon import SparseMLPClassifier
    >>> model = SparseMLPClassifier(max_iter=1).fit([[0.0], [1.0]], [0, 1])
    >>> filling(model)
    'missing features get their mean over the training samples'
    """
    if estimator.network_.scaling.shift is None:
        return "missing features get 0, as this model does not centre its features"
    return "missing features get their mean over the training samples"


def warn_of_missing(how: Alignment, estimator: Any) -> None:
    """Warn if features are missing."""
    if how.missing:
        text = f"{how}; {filling(estimator)}."
        warnings.warn(text, FeatureCoverageWarning, stacklevel=3)


def named_samples(X: Any) -> Dataset:
    """Return a data set with names, from a table, an AnnData or another data set.

    Examples
    --------
    >>> import pandas as pd
    >>> named_samples(pd.DataFrame({"TP53": [1.5], "MDM2": [2.0]})).feature_names
    ('TP53', 'MDM2')
    """
    if isinstance(X, Dataset):
        return X
    if hasattr(X, "var_names"):  # AnnData
        names, values = X.var_names, X.X
    elif hasattr(X, "column_names"):  # Arrow
        names = X.column_names
        values = np.column_stack([np.asarray(column) for column in X.columns])
    elif hasattr(X, "columns") and hasattr(X, "to_numpy"):  # pandas, polars
        names, values = X.columns, X.to_numpy()
    else:
        raise InvalidInputError(
            f"a {type(X).__name__} has no names of features; give a table, an AnnData or a Dataset."
        )
    is_sparse = scipy.sparse.issparse(values)
    values = scipy.sparse.csr_array(values) if is_sparse else np.asarray(values)
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    return Dataset(values, feature_names=tuple(str(name) for name in names))
