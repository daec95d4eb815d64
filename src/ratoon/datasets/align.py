"""Match features by name: select the columns a model was trained on from any data set."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ratoon.datasets.dataset import Dataset
from ratoon.datasets.files import Limits, read_lines
from ratoon.errors import FormatError, InvalidInputError, InvalidParameterError

MIN_COVERAGE = 0.9
"""Default for the fraction of the required features that must be present."""


@dataclass(frozen=True)
class Alignment:
    """How the features of a data set compare with the required ones.

    Parameters
    ----------
    n_wanted : int
        Number of required features.
    missing, extra : tuple of str
        Required names that the data do not have, and names in the data that are not required.
    reordered : bool
        Whether the order of the features in the data differs from the required order.
    n_renamed, n_averaged : int
        Number of columns renamed by the ID map, and of features averaged over several columns.
    """

    n_wanted: int
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    reordered: bool = False
    n_renamed: int = 0
    n_averaged: int = 0

    @property
    def n_found(self) -> int:
        """Number of required features that are present."""
        return self.n_wanted - len(self.missing)

    @property
    def coverage(self) -> float:
        """Fraction of the required features that are present.

        Examples
        --------
        >>> Alignment(4, missing=("TP53",)).coverage
        0.75
        """
        return self.n_found / self.n_wanted if self.n_wanted else 1.0

    @property
    def is_exact(self) -> bool:
        """Whether the data have exactly the required features, in the required order."""
        return not (self.missing or self.extra or self.reordered or self.n_renamed)

    def __str__(self) -> str:
        parts = [f"{self.n_found:,} of {self.n_wanted:,} features found ({self.coverage:.1%})"]
        if self.missing:
            parts.append(f"{len(self.missing):,} missing ({_some(self.missing)})")
        if self.extra:
            parts.append(f"{len(self.extra):,} extra left out ({_some(self.extra)})")
        if self.n_renamed:
            parts.append(f"{self.n_renamed:,} renamed by the ID map")
        if self.n_averaged:
            parts.append(f"{self.n_averaged:,} averaged over several columns")
        if self.reordered:
            parts.append("reordered")
        return "; ".join(parts)


def align(
    data: Dataset,
    names: Sequence[str],
    *,
    id_map: Mapping[str, str] | None = None,
    min_coverage: float = MIN_COVERAGE,
    fill: NDArray[Any] | None = None,
) -> tuple[Dataset, Alignment]:
    """Return the data with these features in this order, and an `Alignment` of what was done.

    Parameters
    ----------
    data : Dataset
        Its features must have names.
    names : sequence of str
        The required features, as the model names them.
    id_map : mapping of str to str, optional
        From names in the data to required names; a name that is not in the map is kept.
        Several columns that map to one name are averaged.
    min_coverage : float, default=0.9
        Fraction of the required features that must be present, in [0, 1].
    fill : ndarray of shape (len(names),), optional
        Value of each feature where it is missing, the same for all samples; default 0.

    Raises
    ------
    InvalidInputError
        If too few features are present, or several columns have the same required name.

    Examples
    --------
    >>> data = Dataset(np.array([[1.0, 2.0, 3.0]]), feature_names=("b", "x", "a"))
    >>> aligned, how = align(data, ("a", "b", "c"), min_coverage=0.5, fill=np.array([7, 8, 9]))
    >>> aligned.X.tolist()
    [[3.0, 1.0, 9.0]]
    >>> print(how)
    2 of 3 features found (66.7%); 1 missing (c); 1 extra left out (x); reordered
    """
    if not 0.0 <= min_coverage <= 1.0:
        raise InvalidParameterError(f"`min_coverage` must be in [0, 1], got {min_coverage!r}.")
    if data.feature_names is None:
        raise InvalidInputError(
            f"{_of(data)}the features have no names, so they cannot be matched by name.\n"
            "  Read a file with feature names, or pass an array whose columns are in the order"
            " of the model."
        )
    known = [(id_map or {}).get(name, name) for name in data.feature_names]
    columns: dict[str, list[int]] = {}
    for column, name in enumerate(known):
        columns.setdefault(name, []).append(column)
    _refuse_ambiguous(data, columns, names)
    wanted = set(names)
    places = [columns.get(name, []) for name in names]
    first = [found[0] for found in places if found]
    how = Alignment(
        len(places),
        tuple(name for name, found in zip(names, places, strict=True) if not found),
        tuple(original for original, name in zip(data.feature_names, known, strict=True)
              if name not in wanted),
        first != sorted(first),
        sum(old != new and new in wanted
            for old, new in zip(data.feature_names, known, strict=True)),
        sum(len(found) > 1 for found in places),
    )  # fmt: skip
    if how.coverage < min_coverage:
        raise InvalidInputError(_too_few(data, names, how, min_coverage))
    if first == list(range(data.n_features)) and how.n_found == len(names):
        x, image_shape = data.X, data.image_shape
    else:
        x, image_shape = _columns(data.X, places, fill), None
    return replace(data, X=x, feature_names=tuple(names), image_shape=image_shape), how


def _columns(x: Any, places: list[list[int]], fill: NDArray[Any] | None) -> Any:
    """Return the columns at these positions, averaged where several, filled where none."""
    counts = np.array([len(found) for found in places])
    rows = np.array([column for found in places for column in found], dtype=np.int64)
    weights = np.repeat(1.0 / np.maximum(counts, 1), counts).astype(x.dtype)
    filled = np.flatnonzero(counts == 0)
    if sp.issparse(x):
        targets = np.repeat(np.arange(len(places)), counts)
        chooser = sp.coo_array((weights, (rows, targets)), shape=(x.shape[1], len(places)))
        chosen = (x @ chooser.tocsc()).tocsr()
        if fill is not None and np.any(fill[filled]):
            ones = sp.csr_array(np.ones((x.shape[0], 1), dtype=x.dtype))
            where = (np.zeros(filled.size, dtype=np.int64), filled)
            row = sp.coo_array((fill[filled].astype(x.dtype), where), shape=(1, len(places)))
            chosen = (chosen + ones @ row.tocsr()).tocsr()
        return chosen
    chosen = np.empty((x.shape[0], len(places)), dtype=x.dtype)
    alone = np.flatnonzero(counts == 1)
    chosen[:, alone] = x[:, [places[k][0] for k in alone]]
    for k in np.flatnonzero(counts > 1):
        chosen[:, k] = x[:, places[k]].mean(axis=1)
    chosen[:, filled] = 0.0 if fill is None else fill[filled]
    return chosen


def _refuse_ambiguous(data: Dataset, columns: dict[str, list[int]], names: Sequence[str]) -> None:
    assert data.feature_names is not None
    for name in names:
        found = columns.get(name, [])
        # Several names may map to one feature; the same name on several columns is a mistake.
        originals = {data.feature_names[column] for column in found}
        if len(originals) < len(found):
            raise InvalidInputError(
                f"{_of(data)}several columns are named {name!r}: {[c + 1 for c in found[:4]]}.\n"
                "  Rename or remove all but one of them."
            )


def _too_few(data: Dataset, names: Sequence[str], how: Alignment, asked: float) -> str:
    assert data.feature_names is not None
    return (
        f"{_of(data)}{how.n_found:,} of the {how.n_wanted:,} required features are present"
        f" ({how.coverage:.1%}), fewer than the minimum of {asked:.1%}; missing:"
        f" {_some(how.missing)}.\n"
        f"  The data have names such as {_some(data.feature_names)}; the model needs names such as"
        f" {_some(tuple(names))}. If these are two naming schemes, pass an ID map (id_map=,"
        f" --id-map); to accept fewer features, lower the minimum (min_coverage=,"
        f" --min-coverage)."
    )


def _of(data: Dataset) -> str:
    return f"{data.source}: " if data.source else ""


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def read_id_map(path: str | os.PathLike[str], *, limits: Limits | None = None) -> dict[str, str]:
    """Read an ID map: pairs of names, one per line, first as in the data, then as in the model.

    The separator is a tab, a comma, a semicolon or spaces; further fields and lines that begin
    with ``#`` are ignored.
    """
    source = Path(path)
    pairs: dict[str, str] = {}
    for number, line in enumerate(read_lines(source, limits or Limits()), start=1):
        text = line.decode("utf-8", errors="replace").strip("\r\n\ufeff")
        if not text.strip() or text.startswith("#"):
            continue
        separator = next((mark for mark in "\t,;" if mark in text), None)
        fields = [field.strip().strip('"') for field in text.split(separator)]
        if len(fields) < 2 or not fields[0] or not fields[1]:
            raise FormatError(
                f"{source}, line {number}: not a pair of names: {text[:60]!r}.\n"
                f"  An ID map has two columns: the name in the data and the name in the model."
            )
        if pairs.setdefault(fields[0], fields[1]) != fields[1]:
            raise FormatError(
                f"{source}, line {number}: {fields[0]!r} maps to both {pairs[fields[0]]!r} and"
                f" {fields[1]!r}; remove one of the lines."
            )
    if not pairs:
        raise FormatError(
            f"{source}: the file has no pairs of names; an ID map needs at least one."
        )
    return pairs
