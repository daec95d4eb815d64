"""Preparation of samples that a model remembers: log2, quantile normalisation, centred groups.

`Prepare` says what to do; `Preparation` holds what was learned from the training rows, as plain
numbers and text, and applies it to other samples.  Everything here needs NumPy only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ratoon.arrays import Array
from ratoon.errors import FormatError, InvalidInputError, InvalidParameterError

LOG2 = ("no", "auto", "yes")
NORMALIZE = ("none", "quantile")

LARGE, RANGE = 100.0, 50.0
MANY_COUNTS = 30
"""Values are taken to be intensities or counts, not their logarithms, above these: see `is_raw`."""


@dataclass(frozen=True)
class Prepare:
    """How samples are prepared, in this order, before a network sees them.

    Parameters
    ----------
    log2 : {"no", "auto", "yes"}
        Whether values v become ``log2(max(v, 0) + 1)``: negative values, which background
        correction leaves, become 0, and zeros stay 0.  "auto" does so if the training rows look
        like intensities or counts (see `is_raw`); the model remembers which it was.
    normalize : {"none", "quantile"}
        "quantile" gives every sample the same distribution of values: the mean of the sorted
        values of the training rows (Bolstad et al., Bioinformatics 19(2):185-193, 2003).
    center_groups : bool
        Whether the mean of every feature within a group of samples (a batch) becomes the mean over
        all training rows.  A group of training keeps the mean it had in training; that of a new
        group is taken over the samples of it that are predicted together.

    Examples
    --------
    >>> as_prepare("log2=auto,quantile")
    Prepare(log2='auto', normalize='quantile', center_groups=False)
    """

    log2: str = "no"
    normalize: str = "none"
    center_groups: bool = False

    def __post_init__(self) -> None:
        for name, choices in (("log2", LOG2), ("normalize", NORMALIZE)):
            if getattr(self, name) not in choices:
                raise InvalidParameterError(
                    f"Prepare: `{name}` must be one of {', '.join(map(repr, choices))}, got"
                    f" {getattr(self, name)!r}."
                )
        if not isinstance(self.center_groups, bool | np.bool_):
            raise InvalidParameterError(
                f"Prepare: `center_groups` must be True or False, got {self.center_groups!r}."
            )

    @property
    def is_needed(self) -> bool:
        """Whether anything is to be done."""
        return self != Prepare()


_WORDS: dict[str, dict[str, Any]] = {
    "log2": {"log2": "yes"},
    **{f"log2={choice}": {"log2": choice} for choice in LOG2},
    "quantile": {"normalize": "quantile"},
    "center_groups": {"center_groups": True},
}


def as_prepare(value: Any) -> Prepare | None:
    """Return a `Prepare`, also from text such as ``"log2=auto,quantile"``; None for None."""
    if value is None:
        return None
    if isinstance(value, Prepare):
        return value if value.is_needed else None
    words = value.replace("+", ",").split(",") if isinstance(value, str) else [""]
    options: dict[str, Any] = {}
    for word in map(str.strip, words):
        if word not in _WORDS:
            raise InvalidParameterError(
                f"`prepare` must be None, a Prepare, or words such as 'log2=auto,quantile'"
                f" ({', '.join(_WORDS)}), got {value!r}."
            )
        options |= _WORDS[word]
    prepare = Prepare(**options)
    return prepare if prepare.is_needed else None


def is_raw(values: Array) -> bool:
    """Whether values look like intensities or counts rather than logarithms.

    That is the rule of GEO2R: the 99 % quantile is above 100, or the range is above 50 and the
    first quartile is above 0.  Or all values are whole numbers from 0 to at least 30: counts.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> intensities = 2 ** rng.normal(8, 2, 1000) - 20  # background correction leaves negatives
    >>> is_raw(intensities), is_raw(np.log2(np.maximum(intensities, 1)))
    (True, False)
    >>> is_raw(rng.normal(size=1000)), is_raw(rng.poisson(8, 1000) ** 2)
    (False, True)
    """
    if values.size == 0:
        return False
    low, quarter, high, top = np.quantile(values, (0.0, 0.25, 0.99, 1.0))
    if high > LARGE or (top - low > RANGE and quarter > 0):
        return True
    return bool(low >= 0 and top >= MANY_COUNTS and np.all(values == np.floor(values)))


def log2_of(values: Array) -> Array:
    """Return ``log2(max(v, 0) + 1)`` of every value.

    Examples
    --------
    >>> log2_of(np.array([-5.0, 0.0, 7.0])).tolist()
    [0.0, 0.0, 3.0]
    """
    return np.asarray(np.log2(np.maximum(values, 0) + values.dtype.type(1)))


def quantiles_of(blocks: Iterable[Array], n_features: int) -> Array:
    """Return the mean of the sorted values of all rows."""
    total, n_rows = np.zeros(n_features), 0
    for block in blocks:
        total += np.sort(block, axis=1).sum(axis=0, dtype=np.float64)
        n_rows += block.shape[0]
    return np.asarray(total / max(n_rows, 1))


def to_quantiles(rows: Array, quantiles: Array) -> Array:
    """Return rows whose sorted values are ``quantiles``; equal values get the mean of theirs.

    Examples
    --------
    >>> to_quantiles(np.array([[3.0, 9.0, 4.0], [5.0, 5.0, 1.0]]), np.array([0.0, 1.0, 2.0]))
    array([[0. , 2. , 1. ],
           [1.5, 1.5, 0. ]])
    """
    sums = np.concatenate([[0.0], np.cumsum(quantiles, dtype=np.float64)])
    found = np.empty_like(rows)
    for number, row in enumerate(rows):
        order = np.argsort(row, kind="stable")
        placed = row[order]
        begins = np.flatnonzero(np.concatenate([[True], placed[1:] != placed[:-1]]))
        ends = np.append(begins[1:], row.size)
        means = (sums[ends] - sums[begins]) / (ends - begins)
        found[number, order] = np.repeat(means, ends - begins)
    return found


@dataclass(frozen=True, eq=False)
class Preparation:
    """What was learned from the training rows, and how it is applied.

    Parameters
    ----------
    log2 : bool
        Whether logarithms are taken.
    quantiles : ndarray of shape (n_features,), optional
        The distribution that every sample gets, ascending.
    group_names : tuple of str
        Groups of the training rows, if they are centred.
    group_means : ndarray of shape (n_groups, n_features), optional
        Mean of every feature in each of them.
    mean : ndarray of shape (n_features,), optional
        Mean of every feature over all training rows, which every group gets.
    group_column : str
        Column of the file with the groups, if it is known.
    fill : ndarray of shape (n_features,), optional
        Mean of every feature before preparation, for features that are missing in other samples.
    """

    log2: bool = False
    quantiles: Array | None = None
    group_names: tuple[str, ...] = ()
    group_means: Array | None = None
    mean: Array | None = None
    group_column: str = ""
    fill: Array | None = field(default=None, repr=False)

    @property
    def centres(self) -> bool:
        """Whether groups are centred."""
        return self.group_means is not None

    @property
    def works_on_zeros(self) -> bool:
        """Whether zeros stay zeros, so that sparse samples stay sparse."""
        return self.quantiles is None and not self.centres

    def rows(self, rows: Array, groups: Sequence[str] | None = None) -> Array:
        """Return prepared rows as float32 or float64.

        Examples
        --------
        >>> Preparation(log2=True).rows(np.array([[0.0, 1.0, 3.0]]))
        array([[0., 1., 2.]])
        """
        found = np.asarray(rows)
        if found.dtype not in (np.float32, np.float64):
            found = found.astype(np.float32 if found.dtype.itemsize <= 2 else np.float64)
        if self.log2:
            found = log2_of(found)
        if self.quantiles is not None:
            found = to_quantiles(found, self.quantiles)
        return self._centred(found, groups) if self.centres else found

    def stored(self, values: Array) -> Array:
        """Return the prepared values of a sparse matrix."""
        return log2_of(values) if self.log2 else values

    def _centred(self, rows: Array, groups: Sequence[str] | None) -> Array:
        assert self.group_means is not None
        assert self.mean is not None
        if groups is None or len(groups) != rows.shape[0]:
            column = f" (column {self.group_column!r} in training)" if self.group_column else ""
            raise InvalidInputError(
                f"this model centres groups of samples{column}, and the groups of these samples are"
                " not known.\n"
                "  Give a Dataset with groups: read(..., group=COLUMN), or"
                " dataclasses.replace(data, groups=...)."
            )
        known = {name: place for place, name in enumerate(self.group_names)}
        found = np.array(rows)
        names = np.asarray([str(name) for name in groups], dtype=object)
        for name in dict.fromkeys(names.tolist()):
            here = names == name
            own = (
                self.group_means[known[name]]
                if name in known
                else rows[here].mean(axis=0, dtype=np.float64)
            )
            found[here] += (self.mean - own).astype(rows.dtype)
        return found

    def describe(self) -> list[str]:
        """Return what is done, in words."""
        parts = []
        if self.log2:
            parts.append("log2(max(v, 0) + 1) of all values")
        if self.quantiles is not None:
            parts.append("quantile normalisation to the training samples")
        if self.centres:
            of = f" of {self.group_column!r}" if self.group_column else ""
            parts.append(f"{len(self.group_names)} groups{of} centred")
        return parts

    # ------------------------------------------------------------------------------------ files

    def to_parts(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the preparation as JSON values and arrays by name."""
        arrays = {
            f"preparation_{name}": np.asarray(getattr(self, name), dtype=np.float64)
            for name in _ARRAYS
            if getattr(self, name) is not None
        }
        values: dict[str, Any] = {
            "log2": self.log2,
            "group_names": list(self.group_names),
            "group_column": self.group_column,
            "arrays": [name for name in _ARRAYS if getattr(self, name) is not None],
        }
        return values, arrays

    @classmethod
    def from_parts(cls, values: Any, arrays: dict[str, Array], n_features: int) -> Preparation:
        """Return what `to_parts` returned, and remove its arrays from ``arrays``.

        Raises
        ------
        FormatError
            If the parts do not fit each other or the number of features.
        """
        if not isinstance(values, dict) or values.keys() != _KEYS:
            raise FormatError(f"the preparation must have the keys {', '.join(sorted(_KEYS))}")
        names, listed = values["group_names"], values["arrays"]
        is_valid = (
            type(values["log2"]) is bool
            and isinstance(values["group_column"], str)
            and isinstance(names, list)
            and all(isinstance(name, str) for name in names)
            and isinstance(listed, list)
            and len(set(map(str, listed))) == len(listed)
            and set(map(str, listed)) <= set(_ARRAYS)
        )
        if not is_valid:
            raise FormatError("the preparation has a value of the wrong type")
        found = {name: arrays.pop(f"preparation_{name}") for name in listed}
        for name, array in found.items():
            shape = (len(names), n_features) if name == "group_means" else (n_features,)
            if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
                raise FormatError(f"the preparation's {name} must be {shape} finite numbers")
        if ("group_means" in found) != bool(names) or ("group_means" in found) > ("mean" in found):
            raise FormatError("the preparation's groups, their means and the mean do not fit")
        if "quantiles" in found and np.any(np.diff(found["quantiles"]) < 0):
            raise FormatError("the preparation's quantiles must not decrease")
        return cls(
            values["log2"],
            group_names=tuple(names),
            group_column=values["group_column"],
            **found,
        )


_ARRAYS = ("quantiles", "group_means", "mean", "fill")
_KEYS = {"log2", "group_names", "group_column", "arrays"}


def group_means(
    blocks: Iterator[tuple[Array, Array]], names: Sequence[str], n_features: int
) -> tuple[Array, Array]:
    """Return the mean of every feature in each group, and over all rows.

    Parameters
    ----------
    blocks : iterator of (rows, codes)
        Prepared rows, and the number of the group of each.
    names : sequence of str
        Names of the groups.
    n_features : int
        Number of features.
    """
    sums, counts = np.zeros((len(names), n_features)), np.zeros(len(names))
    for rows, codes in blocks:
        for code in np.unique(codes):
            sums[code] += rows[codes == code].sum(axis=0, dtype=np.float64)
        counts += np.bincount(codes, minlength=len(names))
    return sums / counts[:, None], sums.sum(axis=0) / counts.sum()
