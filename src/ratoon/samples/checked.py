"""Samples as users have them, made fit for kernels: checked, and copied only where they must be."""

from __future__ import annotations

import warnings
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError
from ratoon.samples.on_disk import EXACT_IN_FLOAT32, DiskRows, MapReader, rows_on_disk


def checked_samples(estimator: Any, X: Any, *, reset: bool, streamed: bool = False) -> Any:
    """Return samples as a dense array of float32 or float64, or as a CSR matrix of float64.

    Arrays and memory maps of a type that kernels read come back as they are, never copied.  What
    is given is never changed.  If ``streamed``, an HDF5 data set and a memory map of another type
    come back as `DiskRows`, of which nothing has been read, nor looked at for missing values.

    Parameters
    ----------
    estimator : estimator
        Learns the number and names of the features if ``reset``, else compares them.
    X : array, memory map, SciPy matrix, pandas, polars or Arrow table, AnnData, Dataset
        Samples in rows.
    reset : bool
        Whether this is the first time.
    streamed : bool
        Whether the caller can do with samples that are not in memory.

    Raises
    ------
    InvalidInputError, ValueError, TypeError
        If they cannot be used; the message says why.
    """
    refuse_misleading(X, "X")
    if _is_anndata(X):
        names = np.asarray(X.var_names, dtype=object)
        return _with_names(estimator, X.X, names, "AnnData", reset=reset, streamed=streamed)
    if _is_dataset(X):
        if X.feature_names is None:
            return checked_samples(estimator, X.X, reset=reset, streamed=streamed)
        names = np.asarray(X.feature_names, dtype=object)
        return _with_names(estimator, X.X, names, "Dataset", reset=reset, streamed=streamed)
    if isinstance(X, DiskRows) and X.is_whole and isinstance(X.reader, MapReader):
        X = X.reader.source  # perhaps to be read as it lies
    if streamed and (stored := rows_on_disk(X)) is not None:
        validate_data(estimator, stored, reset=reset, skip_check_array=True)
        return stored
    if scipy.sparse.issparse(X):
        X = canonical_csr(X)
    return validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype=_float_types(X),
        accept_large_sparse=True,
    )


def _is_anndata(X: Any) -> bool:
    return type(X).__module__.split(".")[0] == "anndata" and hasattr(X, "var_names")


def _is_dataset(X: Any) -> bool:
    # `ratoon.datasets` lies above this package, so its `Dataset` is recognised by its fields.
    return is_dataclass(X) and {"X", "feature_names"} <= {field.name for field in fields(X)}


def _with_names(
    estimator: Any, values: Any, names: Array, kind: str, *, reset: bool, streamed: bool
) -> Any:
    known = None if reset else getattr(estimator, "feature_names_in_", None)
    if known is not None and not np.array_equal(names, known):
        raise InvalidInputError(
            f"the features of this {kind} are not those of training, in name or in order.\n"
            f"  Match them with model.align(...), which says what is missing."
        )
    with warnings.catch_warnings():
        # The matrix alone has no names; they have just been compared.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        checked = checked_samples(estimator, values, reset=reset, streamed=streamed)
    if reset:
        estimator.feature_names_in_ = names
    return checked


def _float_types(X: Any) -> list[Any]:
    if scipy.sparse.issparse(X):
        return [np.float64, np.float32]
    if getattr(X, "dtype", None) in EXACT_IN_FLOAT32:
        return [np.float32, np.float64]
    return [np.float64, np.float32]


def refuse_misleading(values: Any, name: str) -> None:
    """Raise for what NumPy would turn into numbers that mean something else.

    Examples
    --------
    >>> refuse_misleading(np.ma.masked_array([1.0, 2.0], mask=[0, 1]), "X")
    Traceback (most recent call last):
    ...
    ratoon.errors.InvalidInputError: `X` is a masked array, and its mask would be lost.
      Fill what is missing first, for example with X.filled(0.0).
    """
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidInputError(
            f"`{name}` is a masked array, and its mask would be lost.\n"
            f"  Fill what is missing first, for example with {name}.filled(0.0)."
        )
    kinds = [getattr(values, "dtype", None)]
    if hasattr(values, "dtypes") and hasattr(values.dtypes, "__iter__"):
        kinds = list(values.dtypes)
    for kind in kinds:
        if any(word in str(kind).lower() for word in ("datetime", "timedelta", "duration")):
            raise InvalidInputError(
                f"`{name}` holds values of type {kind}, which are not numbers to learn from.\n"
                f"  Turn them into a number that means something, such as days since a date."
            )


def canonical_csr(matrix: Any) -> Any:
    """Return a CSR matrix without duplicates, after looking at every index of ``matrix``.

    SciPy's own routines trust the indices they are given; one that is out of range can end the
    process.  So they are checked before anything else is done with them.

    Examples
    --------
    >>> twice = scipy.sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 2))
    >>> canonical_csr(twice).toarray()
    array([[0., 3.]])
    """
    if matrix.format in ("csr", "csc"):
        _check_compressed(matrix)
    elif matrix.format == "coo" and matrix.ndim == 2:
        for axis, indices in enumerate(matrix.coords):
            _check_range(indices, matrix.shape[axis])
    if matrix.ndim != 2:
        raise InvalidInputError(f"a sparse X needs 2 dimensions, got {matrix.ndim}.")
    if matrix.format == "csr":
        parts = (matrix.data, matrix.indices, matrix.indptr)
        rows = scipy.sparse.csr_array(parts, shape=matrix.shape)
        if rows.has_canonical_format:
            return rows
        rows = rows.copy()
    else:
        rows = scipy.sparse.csr_array(matrix)
    rows.sum_duplicates()
    return rows


def _check_compressed(matrix: Any) -> None:
    n_major, n_minor = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    starts, n_entries = matrix.indptr, matrix.indices.size
    if (
        starts.size != n_major + 1
        or starts[0] != 0
        or starts[-1] != n_entries
        or matrix.data.size != n_entries
        or bool(np.any(np.diff(starts) < 0))
    ):
        raise InvalidInputError(
            f"the sparse X is damaged: its index pointers must rise from 0 to its {n_entries}"
            f" entries."
        )
    _check_range(matrix.indices, n_minor)


def _check_range(indices: Array, n: int) -> None:
    if indices.size and (indices.min() < 0 or indices.max() >= n):
        raise InvalidInputError(
            f"the sparse X is damaged: indices from {indices.min()} to {indices.max()} where 0 to"
            f" {n - 1} are possible."
        )


def checked_weights(sample_weight: Any, n_samples: int) -> NDArray[np.float64] | None:
    """Return one weight per sample, or None where all count the same."""
    if sample_weight is None:
        return None
    refuse_misleading(sample_weight, "sample_weight")
    weights = np.asarray(sample_weight, dtype=np.float64)
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
