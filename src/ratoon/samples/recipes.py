"""What to do about samples with missing values or columns that are not numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ratoon.arrays import Array

_MOST = 5
_OF_WORDS = ("could not convert string", "Unable to convert", "Cannot cast")


def recipe_for(X: Any, message: str, owner: str) -> str | None:
    """Return the error for samples that scikit-learn refused; None if its message is kept.

    Examples
    --------
    >>> x = np.array([[1.0, np.nan], [2.0, 3.0]])
    >>> print(recipe_for(x, "Input X contains NaN.", "SparseMLPClassifier"))
    Input X contains NaN in 1 of 2 columns (column 1).
      Fill missing values in a pipeline, which also marks them:
        make_pipeline(SimpleImputer(add_indicator=True), SparseMLPClassifier(...))
      With `ratoon.datasets.read`, give missing="mean" or another way.
    """
    if "contains NaN" in message:
        return _of_missing(X, owner)
    if any(part in message for part in _OF_WORDS):
        return _of_text(X, owner)
    return None


def _of_missing(X: Any, owner: str) -> str:
    where = ""
    is_table = _is_table(X)
    if is_table:
        missing = [str(name) for name in X.columns if X[name].isna().any()]
        where = f" in {len(missing)} of {len(X.columns)} columns ({_listed(missing)})"
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f":
        columns = np.flatnonzero(_has_nan(X)).tolist()
        named = _listed([f"column {k}" for k in columns], quote=False)
        where = f" in {len(columns)} of {X.shape[1]} columns ({named})"
    first = "ratoon.table_encoder()" if is_table else "SimpleImputer(add_indicator=True)"
    return (
        f"Input X contains NaN{where}.\n"
        f"  Fill missing values in a pipeline, which also marks them:\n"
        f"    make_pipeline({first}, {owner}(...))\n"
        f'  With `ratoon.datasets.read`, give missing="mean" or another way.'
    )


def _of_text(X: Any, owner: str) -> str:
    if _is_table(X):
        kinds = {str(name): str(X[name].dtype) for name in X.columns}
        words = ("category", "object", "str", "string")
        text = [f"{name!r} ({kind})" for name, kind in kinds.items() if kind in words]
        what = f"X has columns that are not numbers: {_listed(text, quote=False)}."
        first = "ratoon.table_encoder()"
    else:
        what = "X has values that are not numbers: could not convert string to float."
        first = 'OneHotEncoder(handle_unknown="ignore")'
    return (
        f"{what}\n"
        f"  Encode categories in a pipeline, where they stay sparse:\n"
        f"    make_pipeline({first}, {owner}(...))"
    )


def _is_table(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "isna")


def _has_nan(x: Array) -> Array:
    """Return which columns have a NaN, without an array of the size of all samples."""
    with np.errstate(invalid="ignore", over="ignore"):
        found: Array = np.isnan(x.sum(axis=0))
    # The sum of both infinities is NaN, too.
    for column in np.flatnonzero(found):
        found[column] = np.isnan(x[:, column]).any()
    return found


def _listed(names: Sequence[str], *, quote: bool = True) -> str:
    shown = [f"{name[:60]!r}" if quote else name[:80] for name in names[:_MOST]]
    return ", ".join([*shown, "..."] if len(names) > _MOST else shown)
