"""Rename features by an ID map, and collapse several features of one name into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ratoon.datasets.dataset import Dataset, Naming
from ratoon.errors import InvalidInputError, InvalidParameterError

Duplicates = Literal["keep", "mean", "max", "first", "error"]

SEVERAL = "///"
"""Between the names that one name maps to, as in the annotation files of GEO."""


def names_of(name: str, id_map: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names that a name maps to; a name that is not in the map is kept.

    Examples
    --------
    >>> names_of("1_at", {"1_at": "TP53 /// MDM2"}), names_of("2_at", {"1_at": "TP53"})
    (('TP53', 'MDM2'), ('2_at',))
    """
    if name not in id_map:
        return (name,)
    return tuple(part for part in map(str.strip, id_map[name].split(SEVERAL)) if part)


def collapse(
    data: Dataset,
    duplicates: Duplicates = "mean",
    *,
    id_map: Mapping[str, str] | None = None,
) -> Dataset:
    """Return the data with one feature per name.

    Parameters
    ----------
    data : Dataset
        Its features must have names.
    duplicates : {"keep", "mean", "max", "first", "error"}
        What becomes of several features of one name: their mean or maximum in each sample, the
        first of them, an error, or they are kept.
    id_map : mapping of str to str, optional
        From names in the data to names of features, several separated by ``///``: the feature then
        counts for each of them.  Features that are not in the map are left out.

    Returns
    -------
    Dataset
        Features are in the order in which their names first occur.  `Dataset.naming` keeps what was
        done; a model that is fitted on it does the same to other data in `align`.

    Examples
    --------
    >>> data = Dataset(np.array([[1.0, 2.0, 5.0]]), feature_names=("1_at", "2_at", "3_at"))
    >>> found = collapse(data, "max", id_map={"1_at": "TP53", "3_at": "TP53 /// MDM2"})
    >>> found.feature_names, found.X.tolist()
    (('TP53', 'MDM2'), [[5.0, 5.0]])
    """
    if duplicates not in get_args(Duplicates):
        raise InvalidParameterError(
            f"`duplicates` must be one of {', '.join(map(repr, get_args(Duplicates)))}, got"
            f" {duplicates!r}."
        )
    if data.feature_names is None:
        raise InvalidInputError(
            f"{data.source or 'the data'}: the features have no names, so none can be renamed or"
            " collapsed."
        )
    columns: dict[str, list[int]] = {}
    flat: list[tuple[str, int]] = []
    n_left_out = 0
    for column, name in enumerate(data.feature_names):
        if id_map is not None and name not in id_map:
            n_left_out += 1
            continue
        for new in names_of(name, id_map or {}):
            columns.setdefault(new, []).append(column)
            flat.append((new, column))
    if not flat:
        raise InvalidInputError(
            f"{data.source or 'the data'}: no feature is in the ID map; the data have names such as"
            f" {', '.join(data.feature_names[:3])}, the map {', '.join(list(id_map or {})[:3])}."
        )
    notes = list(data.notes)
    if id_map is not None:
        left_out = f"; {n_left_out:,} features are not in it and were left out" * bool(n_left_out)
        notes.append(f"features renamed by the ID map{left_out}")
    repeated = {name: found for name, found in columns.items() if len(found) > 1}
    if repeated and duplicates == "error":
        name, found = next(iter(repeated.items()))
        raise InvalidInputError(
            f"{data.source or 'the data'}: {len(repeated):,} feature names occur more than once,"
            f" for instance {name!r} in columns {[column + 1 for column in found[:4]]}.\n"
            "  Collapse them with duplicate_features='mean', 'max' or 'first', or keep them with"
            " 'keep'."
        )
    naming = replace(
        data.naming or Naming(), duplicates=duplicates, id_map=tuple((id_map or {}).items())
    )
    if duplicates == "keep" or not repeated:
        names = tuple(name for name, _ in flat)
        places = [[column] for _, column in flat]
    else:
        names, places = tuple(columns), list(columns.values())
        word = {"mean": "their mean", "max": "their maximum", "first": "the first"}[duplicates]
        notes.append(f"{len(repeated):,} names of several features were collapsed to {word}")
    if places == [[column] for column in range(data.n_features)]:
        return replace(data, feature_names=names, naming=naming, notes=tuple(notes))
    x = combined(data.X, places, duplicates)
    return replace(
        data, X=x, feature_names=names, naming=naming, notes=tuple(notes), image_shape=None
    )


def combined(x: Any, places: Sequence[Sequence[int]], how: str) -> Any:
    """Return one column for each list of columns: their mean, maximum, or the first.

    Mean and maximum are those of the values that are not missing.

    Examples
    --------
    >>> combined(np.array([[1.0, 4.0, 2.0], [np.nan, 3.0, 2.0]]), [[0, 1], [2]], "mean")
    array([[2.5, 2. ],
           [3. , 2. ]])
    """
    if isinstance(x, np.ndarray) or not sp.issparse(x):
        x = np.asarray(x)
        out = np.empty((x.shape[0], len(places)), dtype=x.dtype)
        alone = np.array([k for k, found in enumerate(places) if len(found) == 1 or how == "first"])
        if alone.size:
            out[:, alone] = x[:, [places[k][0] for k in alone]]
        for k, found in enumerate(places):
            if len(found) > 1 and how != "first":
                out[:, k] = _of_known(x[:, list(found)], how)
        return out
    if how == "max":
        return _maximum(x, places)
    lists = [list(found[:1]) if how == "first" else list(found) for found in places]
    counts = np.array([len(found) for found in lists])
    rows = np.concatenate([np.asarray(found, dtype=np.int64) for found in lists])
    weights: NDArray[Any] = np.repeat(1.0 / counts, counts).astype(x.dtype)
    targets = np.repeat(np.arange(len(lists)), counts)
    chooser = sp.coo_array((weights, (rows, targets)), shape=(x.shape[1], len(lists)))
    return (x @ chooser.tocsc()).tocsr()


def _of_known(part: Any, how: str) -> Any:
    """Return the maximum or the mean of every row, without missing values if there are others."""
    found = part.max(axis=1) if how == "max" else part.mean(axis=1)
    partly = np.flatnonzero(np.isnan(found))
    partly = partly[~np.isnan(part[partly]).all(axis=1)]
    if partly.size:
        found[partly] = (np.nanmax if how == "max" else np.nanmean)(part[partly], axis=1)
    return found


def _maximum(x: Any, places: Sequence[Sequence[int]]) -> Any:
    columns = x.tocsc()
    most = max(map(len, places))
    first = [found[0] for found in places]
    best = columns[:, first]
    for number in range(1, most):
        # A shorter list repeats its first column, which changes nothing.
        other = [found[number] if len(found) > number else found[0] for found in places]
        best = best.maximum(columns[:, other])
    return best.tocsr()
