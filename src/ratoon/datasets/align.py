"""Match features by name: select the columns a model was trained on from any data set."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ratoon.datasets.collapse import SEVERAL, combined, names_of
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
            parts.append(f"{self.n_averaged:,} combined from several columns")
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
    duplicates: str = "keep",
) -> tuple[Dataset, Alignment]:
    """Return the data with these features in this order, and an `Alignment` of what was done.

    Parameters
    ----------
    data : Dataset
        Its features must have names.
    names : sequence of str
        The required features, as the model names them.
    id_map : mapping of str to str, optional
        From names in the data to required names, several separated by ``///``; a name that is not
        in the map is kept.  Several columns that map to one name are collapsed.
    min_coverage : float, default=0.9
        Fraction of the required features that must be present, in [0, 1].
    fill : ndarray of shape (len(names),), optional
        Value of each feature where it is missing, the same for all samples; default 0.
    duplicates : {"keep", "mean", "max", "first"}, default="keep"
        What becomes of several columns that are required once: their mean, maximum, or the first.
        With "keep" those of different names are averaged, and columns of the same name are an
        error.  A name that is required several times takes the columns of that name in their order.

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
    known = [names_of(name, id_map or {}) for name in data.feature_names]
    columns: dict[str, list[int]] = {}
    for column, found_names in enumerate(known):
        for name in found_names:
            columns.setdefault(name, []).append(column)
    wanted = Counter(names)
    if duplicates == "keep":
        _refuse_ambiguous(data, columns, wanted)
    places = _places(columns, names, wanted)
    first = [found[0] for found in places if found]
    how = Alignment(
        len(places),
        tuple(name for name, found in zip(names, places, strict=True) if not found),
        tuple(original for original, found_names in zip(data.feature_names, known, strict=True)
              if not any(name in wanted for name in found_names)),
        first != sorted(first),
        sum(any(old != new and new in wanted for new in found_names)
            for old, found_names in zip(data.feature_names, known, strict=True)),
        sum(len(found) > 1 for found in places),
    )  # fmt: skip
    if how.coverage < min_coverage:
        raise InvalidInputError(_too_few(data, names, how, min_coverage))
    is_plain = how.n_averaged == 0 and how.n_found == len(names)
    if first == list(range(data.n_features)) and is_plain:
        x, image_shape = data.X, data.image_shape
    else:
        x = _columns(data.X, places, fill, "mean" if duplicates == "keep" else duplicates)
        image_shape = None
    return replace(data, X=x, feature_names=tuple(names), image_shape=image_shape), how


def _places(
    columns: Mapping[str, list[int]], names: Sequence[str], wanted: Mapping[str, int]
) -> list[list[int]]:
    """Return the columns of every required name; of a repeated name, one column each."""
    used: Counter[str] = Counter()
    places = []
    for name in names:
        found = columns.get(name, [])
        if wanted[name] > 1:
            found = found[used[name] : used[name] + 1]
            used[name] += 1
        places.append(found)
    return places


def _columns(x: Any, places: list[list[int]], fill: NDArray[Any] | None, how: str) -> Any:
    """Return the columns at these positions, combined where several, filled where none."""
    empty = np.array([k for k, found in enumerate(places) if not found], dtype=np.int64)
    # A column is put where none is found, and overwritten below.
    chosen = combined(x, [found or [0] for found in places], how)
    if not empty.size:
        return chosen
    values = np.zeros(len(places)) if fill is None else np.asarray(fill)
    if not sp.issparse(chosen):
        chosen[:, empty] = values[empty]
        return chosen
    kept = sp.diags_array(np.where(np.isin(np.arange(len(places)), empty), 0.0, 1.0))
    chosen = (chosen @ kept.astype(x.dtype)).tocsr()
    chosen.eliminate_zeros()
    if np.any(values[empty]):
        ones = sp.csr_array(np.ones((x.shape[0], 1), dtype=x.dtype))
        where = (np.zeros(empty.size, dtype=np.int64), empty)
        row = sp.coo_array((values[empty].astype(x.dtype), where), shape=(1, len(places)))
        chosen = (chosen + ones @ row.tocsr()).tocsr()
    return chosen


def _refuse_ambiguous(
    data: Dataset, columns: Mapping[str, list[int]], wanted: Mapping[str, int]
) -> None:
    assert data.feature_names is not None
    for name, number in wanted.items():
        found = columns.get(name, [])
        if number > 1 and len(found) in (0, number):
            continue
        if number > 1:
            raise InvalidInputError(
                f"{_of(data)}{name!r} is the name of {len(found)} columns, and of {number} features"
                " of the model, which cannot be matched.\n"
                "  Train on data with one feature per name: duplicate_features='mean'."
            )
        # Several names may map to one feature; the same name on several columns is ambiguous.
        originals = {data.feature_names[column] for column in found}
        if len(originals) < len(found):
            raise InvalidInputError(
                f"{_of(data)}several columns are named {name!r}: {[c + 1 for c in found[:4]]}.\n"
                "  Collapse them with duplicate_features='mean', 'max' or 'first', or remove all"
                " but one of them."
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


_NO_NAME = ("---", "NA", "NaN")


def read_id_map(path: str | os.PathLike[str], *, limits: Limits | None = None) -> dict[str, str]:
    """Read an ID map: pairs of names, one per line, first as in the data, then as in the model.

    The separator is a tab, a comma, a semicolon or spaces; further fields and lines that begin
    with ``#`` are ignored.  A name may map to several: on several lines, or separated by ``///``.
    Lines whose second name is ``---`` or ``NA`` are skipped.
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
        if fields[1] in _NO_NAME:
            continue
        known = pairs.setdefault(fields[0], fields[1])
        if fields[1] not in map(str.strip, known.split(SEVERAL)) and known != fields[1]:
            pairs[fields[0]] = f"{known} {SEVERAL} {fields[1]}"
    if not pairs:
        raise FormatError(
            f"{source}: the file has no pairs of names; an ID map needs at least one."
        )
    return pairs
