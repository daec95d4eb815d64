"""The check of X: everything users may pass as samples, turned into `Samples`.

X is copied only where that cannot be avoided, and never changed.
"""

from __future__ import annotations

import warnings
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.samples.base import Samples
from ratoon.samples.blocks import rows_in_blocks
from ratoon.samples.csr import checked_csr
from ratoon.samples.dlpack import as_numpy
from ratoon.samples.in_memory import DenseSamples, SparseSamples
from ratoon.samples.on_disk import COMPACT, EXACT_IN_FLOAT32, DiskRows, MapReader, rows_on_disk
from ratoon.samples.on_disk_csr import DiskCsrRows
from ratoon.samples.recipes import recipe_for


def checked_samples(estimator: Any, X: Any, *, reset: bool, streamed: bool = False) -> Samples:
    """Return X as samples whose values are float32 or float64.

    Arrays and memory maps that kernels can read are not copied.  If ``streamed``, integers of 8 and
    16 bits and truth values are kept as they are, and HDF5 data sets and other memory maps come
    back as `DiskRows`; none of their rows has been read, so missing values are found later, see
    `Samples.check`.

    Parameters
    ----------
    estimator : estimator
        Learns the number and the names of the features if ``reset``, else they are compared.
    X : array, memory map, SciPy matrix, pandas, polars or Arrow table, AnnData, Dataset
        Samples in rows.
    reset : bool
        Whether this is the first call.
    streamed : bool
        Whether the caller can use samples on disk and does not need all values at once.

    Raises
    ------
    InvalidInputError, ValueError, TypeError
        If X cannot be used; the message gives the reason.
    """
    X = as_numpy(X, "X")
    refuse_misleading(X, "X")
    kind, values, names = _unpacked(X)
    if names is None:
        return _validated(estimator, values, reset=reset, streamed=streamed)
    known = None if reset else getattr(estimator, "feature_names_in_", None)
    if known is not None and not np.array_equal(names, known):
        raise InvalidInputError(
            f"the features of this {kind} are not those of training, in name or in order.\n"
            f"  Match them with model.align(...), which reports what is missing."
        )
    refuse_misleading(values, "X")
    with warnings.catch_warnings():
        # The values alone have no names; the names have just been compared.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        checked = _validated(estimator, values, reset=reset, streamed=streamed)
    if reset:
        estimator.feature_names_in_ = names
    return checked


def targets_or_labels(X: Any, y: Any) -> Any:
    """Return ``y``, or the labels of ``X`` if ``y`` is None and ``X`` is a `Dataset`."""
    if y is None and _is_dataset(X):
        return X.labels
    return y.compute() if hasattr(y, "__dask_graph__") else as_numpy(y, "y")


def named_columns(X: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the values and the feature names of a table or an AnnData.

    Examples
    --------
    >>> import pandas as pd
    >>> named_columns(pd.DataFrame({"TP53": [1.5], "MDM2": [2.0]}))
    (array([[1.5, 2. ]]), ('TP53', 'MDM2'))
    """
    if _is_anndata(X):
        values, names = X.X, X.var_names
    elif hasattr(X, "column_names"):  # Arrow
        values = np.column_stack([np.asarray(column) for column in X.columns])
        names = X.column_names
    elif hasattr(X, "columns") and hasattr(X, "to_numpy"):  # pandas, polars
        values, names = X.to_numpy(), X.columns
    else:
        raise InvalidInputError(
            f"a {type(X).__name__} has no feature names; give a table, an AnnData or a Dataset."
        )
    return values, tuple(str(name) for name in names)


class _Unpacked(NamedTuple):
    kind: str
    values: Any
    names: Array | None


def _unpacked(X: Any) -> _Unpacked:
    """Take the values and the feature names out of an AnnData or a Dataset."""
    if _is_anndata(X):
        return _Unpacked(
            "AnnData", X.X, np.asarray([str(name) for name in X.var_names], dtype=object)
        )
    if not _is_dataset(X):
        return _Unpacked(type(X).__name__, X, None)
    names = None if X.feature_names is None else np.asarray(X.feature_names, dtype=object)
    return _Unpacked("Dataset", X.X, names)


def _is_anndata(X: Any) -> bool:
    # A table may have columns of any name, and they may be attributes.
    return hasattr(X, "var_names") and hasattr(X, "X") and not hasattr(X, "columns")


def _is_dataset(X: Any) -> bool:
    # `ratoon.datasets` is above this package, so its `Dataset` is recognised by its fields.
    return is_dataclass(X) and {"X", "feature_names"} <= {field.name for field in fields(X)}


def _validated(estimator: Any, X: Any, *, reset: bool, streamed: bool) -> Samples:
    if isinstance(X, DiskRows) and X.is_whole and isinstance(X.reader, MapReader):
        X = X.reader.source  # kernels may be able to read it directly
    blocks = rows_in_blocks(X)
    if blocks is not None:
        X = blocks if streamed else blocks.values()
    if streamed and (stored := rows_on_disk(X)) is not None:
        validate_data(estimator, stored, reset=reset, skip_check_array=True)
        return stored
    if isinstance(X, DiskCsrRows):
        X = X.values()  # all rows, still sparse
    if scipy.sparse.issparse(X):
        X = checked_csr(X)
    try:
        checked = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=_types(X, compact=streamed),
            accept_large_sparse=True,
        )
    except ValueError as error:
        if recipe := recipe_for(X, str(error), type(estimator).__name__):
            raise InvalidInputError(recipe) from None
        raise
    return SparseSamples(checked) if scipy.sparse.issparse(checked) else DenseSamples(checked)


def _types(X: Any, *, compact: bool) -> list[Any]:
    """Return the number types that X may have; the first is that to convert others to."""
    if compact and isinstance(X, np.ndarray) and X.dtype in COMPACT:
        return [X.dtype]
    if scipy.sparse.issparse(X):
        return [np.float64, np.float32]
    if getattr(X, "dtype", None) in EXACT_IN_FLOAT32:
        return [np.float32, np.float64]
    return [np.float64, np.float32]


def refuse_misleading(values: Any, name: str) -> None:
    """Raise for values that NumPy would convert to numbers with another meaning.

    Examples
    --------
    >>> refuse_misleading(np.ma.masked_array([1.0, 2.0], mask=[0, 1]), "X")
    Traceback (most recent call last):
    ...
    ratoon.errors.InvalidInputError: `X` is a masked array, and its mask would be lost.
      Fill the missing values first, for example with X.filled(0.0).
    """
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidInputError(
            f"`{name}` is a masked array, and its mask would be lost.\n"
            f"  Fill the missing values first, for example with {name}.filled(0.0)."
        )
    kinds = [getattr(values, "dtype", None)]
    if hasattr(values, "dtypes") and hasattr(values.dtypes, "__iter__"):
        kinds = list(values.dtypes)
    for kind in kinds:
        if any(word in str(kind).lower() for word in ("datetime", "timedelta", "duration")):
            raise InvalidInputError(
                f"`{name}` holds values of type {kind}, which are not numbers to learn from.\n"
                f"  Convert them to meaningful numbers, such as days since a date."
            )


def checked_weights(sample_weight: Any, n_samples: int) -> NDArray[np.float64] | None:
    """Return one weight per sample, or None if all have the same weight."""
    if sample_weight is None:
        return None
    sample_weight = as_numpy(sample_weight, "sample_weight")
    refuse_misleading(sample_weight, "sample_weight")
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"`sample_weight` must hold numbers: {error}.") from error
    if weights.ndim == 0:
        weights = np.full(n_samples, float(weights))
    if weights.ndim != 1:
        raise InvalidInputError(
            f"Sample weights must be 1D array or scalar, got {weights.ndim} dimensions."
        )
    if weights.size != n_samples:
        raise InvalidInputError(
            f"sample_weight.shape == {weights.shape}, expected {(n_samples,)}: one weight per"
            f" sample of X."
        )
    if not np.isfinite(weights).all():
        raise InvalidInputError("`sample_weight` contains NaN or infinity.")
    if (weights < 0).any():
        raise InvalidInputError("`sample_weight` must not be negative.")
    if not weights.any():
        raise InvalidInputError("Sample weights must contain at least one non-zero number.")
    return weights
