"""Missing values: an error by default, filled or dropped on request."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ratoon.datasets.dataset import Dataset, Naming
from ratoon.errors import InvalidInputError, InvalidParameterError

Missing: TypeAlias = Literal["error", "mean", "median", "zero", "drop", "drop_samples", "keep"]


def treat_missing(data: Dataset, how: Missing = "error") -> Dataset:
    """Return ``data`` without missing values, or raise an error with their position.

    ``"mean"`` and ``"median"`` are computed per feature over *all* samples; to avoid leakage from
    test to training samples, read with ``"keep"`` and impute inside each fold.  ``"drop"`` removes
    the features with a missing value (samples are usually scarcer), ``"drop_samples"`` the samples.
    `Dataset.naming` keeps the values that were filled in; a model that is fitted on the data fills
    them in again in `align_samples`.

    Examples
    --------
    >>> data = Dataset(np.array([[1.0, np.nan], [3.0, 4.0]]))
    >>> treat_missing(data, "mean").X
    array([[1., 4.],
           [3., 4.]])
    """
    if how not in get_args(Missing):
        raise InvalidParameterError(
            f"`missing` must be one of {', '.join(get_args(Missing))}, got {how!r}."
        )
    values = data.X.data if data.is_sparse else data.X
    if values.dtype == np.uint8:
        return data
    if np.isinf(values).any():
        raise InvalidInputError(
            f"{data.source}: {int(np.isinf(values).sum())} values are infinite"
            f"{_where(data, np.isinf)}.\n  Infinite values often come from the logarithm of zero:"
            " fix them in the file. If they are only too large for float32, pass dtype='float64'."
        )
    n_missing = int(np.isnan(values).sum())
    if not n_missing or how == "keep":
        return data
    if how == "error":
        raise InvalidInputError(
            f"{data.source}: {n_missing} values are missing{_where(data, np.isnan)}.\n"
            "  Pass missing='mean', 'median' or 'zero' to fill them in, 'drop' to remove the"
            " features with missing values, or 'drop_samples' to remove the samples."
        )
    if how in ("drop", "drop_samples"):
        return _drop(data, n_missing, features=how == "drop")
    return _fill(data, n_missing, how)


def _where(data: Dataset, found: np.ufunc) -> str:
    if data.is_sparse:
        slot = int(np.flatnonzero(found(data.X.data))[0])
        row = int(np.searchsorted(data.X.indptr, slot, side="right")) - 1
        column = int(data.X.indices[slot])
    else:
        row, column = (int(place[0]) for place in np.nonzero(found(data.X)))
    sample = repr(data.sample_names[row]) if data.sample_names else str(row + 1)
    feature = repr(data.feature_names[column]) if data.feature_names else str(column + 1)
    return f", the first in sample {sample}, feature {feature}"


def _drop(data: Dataset, n_missing: int, *, features: bool) -> Dataset:
    if data.is_sparse:
        absent = np.isnan(data.X.data)
        rows = np.repeat(np.arange(data.n_samples), np.diff(data.X.indptr))
        hit = np.unique((data.X.indices if features else rows)[absent])
    else:
        hit = np.flatnonzero(np.isnan(data.X).any(axis=0 if features else 1))
    kept = np.setdiff1d(np.arange(data.n_features if features else data.n_samples), hit)
    what = "features" if features else "samples"
    if not kept.size:
        raise InvalidInputError(
            f"{data.source}: all {what} have a missing value, so nothing would be left.\n"
            "  Pass missing='mean', 'median' or 'zero' to fill them in."
        )
    note = f"left out {hit.size} {what} with missing values ({n_missing} values)"
    if not features:
        return replace(data.take(kept), notes=(*data.notes, note))
    names = data.feature_names
    return replace(
        data,
        X=data.X[:, kept],
        feature_names=None if names is None else tuple(names[j] for j in kept),
        image_shape=None,
        notes=(*data.notes, note),
    )


def _fill(data: Dataset, n_missing: int, how: Missing) -> Dataset:
    if data.is_sparse and how != "zero":
        raise InvalidInputError(
            f"{data.source}: missing={how!r} does not work with a sparse matrix.\n"
            "  Pass missing='zero', 'drop' or 'drop_samples', or sparse=False for a dense matrix."
        )
    fill = np.zeros(data.n_features, dtype=data.X.dtype)
    if how != "zero":
        statistic = np.nanmean if how == "mean" else np.nanmedian
        known = ~np.isnan(data.X).all(axis=0)
        fill[known] = statistic(data.X[:, known], axis=0)
    word = "zero" if how == "zero" else f"the {how} of the feature"
    return replace(
        data,
        X=filled(data.X, fill),
        naming=replace(data.naming or Naming(), fill=fill),
        notes=(*data.notes, f"filled {n_missing} missing values with {word}"),
    )


def filled(X: Any, fill: NDArray[Any]) -> Any:
    """Return the samples with one value per feature where values are missing.

    Examples
    --------
    >>> filled(np.array([[1.0, np.nan]]), np.array([5.0, 6.0]))
    array([[1., 6.]])
    """
    X = X.copy()
    if sp.issparse(X):
        absent = np.isnan(X.data)
        X.data[absent] = fill[X.indices[absent]]
        X.eliminate_zeros()
        return X
    rows, columns = np.nonzero(np.isnan(X))
    X[rows, columns] = fill[columns]
    return X
