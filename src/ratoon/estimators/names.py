"""Match the features of samples with those an estimator was trained on, by name."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from ratoon.datasets import Alignment, Dataset, Naming, align, read_id_map
from ratoon.datasets.missing import filled
from ratoon.errors import InvalidInputError
from ratoon.samples.checked import named_columns
from ratoon.samples.in_memory import wrap


class FeatureCoverageWarning(UserWarning):
    """Some features of training are missing and were replaced by their mean."""


def align_samples(
    estimator: Any, X: Any, *, id_map: Any = None, min_coverage: float
) -> tuple[Dataset, Alignment]:
    """Return samples with the features of training in their order, and how they were matched.

    A missing feature gets its mean over the training samples, which is 0 after standardisation, or
    0 if the estimator does not centre its features.  Names are mapped and repeated features
    collapsed as in training.
    """
    known = getattr(estimator, "feature_names_in_", None)
    if known is None:
        raise InvalidInputError(
            f"this {type(estimator).__name__} was fitted without feature names, so there is nothing"
            f" to match by.\n  Fit it on a table whose columns have names."
        )
    if id_map is not None and not isinstance(id_map, Mapping):
        id_map = read_id_map(Path(id_map))
    samples, names = named_samples(X), [str(name) for name in known]
    naming: Naming = getattr(estimator, "naming_", None) or Naming()
    if id_map is None and not set(names) & set(samples.feature_names or ()):
        id_map = dict(naming.id_map) or None  # names of the file that the model was trained on
    preparation = estimator.preparation_
    aligned, how = align(
        samples,
        names,
        id_map=id_map,
        min_coverage=min_coverage,
        fill=estimator.network_.scaling.shift if preparation is None else preparation.fill,
        duplicates=naming.duplicates,
    )
    return with_filled(aligned, naming), how


def naming_of(X: Any) -> Naming | None:
    """Return how the columns of a data set were understood, as its model keeps it."""
    naming: Naming | None = X.naming if isinstance(X, Dataset) else None
    if naming is None or naming.fill is None or naming.fill.shape == (X.n_features,):
        return naming
    return replace(naming, fill=None)  # other features were made of those that were filled


def with_filled(data: Dataset, naming: Naming | None) -> Dataset:
    """Return samples with their missing values filled as those of training, if these were."""
    if naming is None or naming.fill is None or not np.isnan(sum_of(data.X)):
        return data
    return replace(data, X=filled(data.X, naming.fill))


def sum_of(X: Any) -> float:
    """Return the sum of all values, which is NaN if one is missing; 0 for samples on disk."""
    in_memory = scipy.sparse.issparse(X) or isinstance(X, np.ndarray)
    return float(X.sum(dtype=np.float64)) if in_memory else 0.0


def filling(estimator: Any) -> str:
    """Describe which value missing features get.

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
    """Return a table, an AnnData or a `Dataset` as a `Dataset` with feature names.

    Examples
    --------
    >>> import pandas as pd
    >>> named_samples(pd.DataFrame({"TP53": [1.5], "MDM2": [2.0]})).feature_names
    ('TP53', 'MDM2')
    """
    if isinstance(X, Dataset):
        return X
    values, names = named_columns(X)
    values = wrap(values).values()
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)
    return Dataset(values, feature_names=names)
