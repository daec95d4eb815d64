"""`Dataset`: a matrix with its labels, names and source."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ratoon.errors import InvalidInputError
from ratoon.samples.base import Samples

Matrix: TypeAlias = Any
"""A 2-D float32, float64 or uint8 `ndarray`, or a SciPy CSR matrix of float32 or float64."""


@dataclass(frozen=True)
class Naming:
    """How the columns of a file were understood, to do the same with other files.

    Parameters
    ----------
    duplicates : str
        Rule for several columns of one name: "mean", "max" or "first"; "keep" keeps all.
    id_map : tuple of (str, str)
        Pairs of a name in the file and a name of a feature, or several separated by ``///``.
    label, time, event : str
        Columns with the labels, or with times and events, if they were named.
    columns : tuple of str
        All columns that were named and are not features: labels, groups, times, events, and those
        that were ignored.
    fill : ndarray of shape (n_features,), optional
        The values with which missing ones were filled, one per feature.
    """

    duplicates: str = "keep"
    id_map: tuple[tuple[str, str], ...] = ()
    label: str = ""
    columns: tuple[str, ...] = ()
    time: str = ""
    event: str = ""
    fill: NDArray[Any] | None = field(default=None, compare=False)


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Samples in rows, features in columns, with labels, names and source.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features) or SciPy CSR matrix
        float32 or float64; also uint8 if dense.
    y : ndarray of shape (n_samples,) or None
        For classes, int64 codes that index `class_names`; float64 for a continuous target.
    feature_names, sample_names : tuple of str or None
        None if the file has none.
    class_names : tuple of str or None
        The labels as written in the file; None without labels or with a continuous target.
    source : str
        Path, URL or generator call.
    sha256 : str or None
        SHA-256 digest of the file as stored (of all files, for a folder).
    notes : tuple of str
        Decisions of the reader, for instance whether samples are in rows or in columns.
    image_shape : tuple of int, optional
        (height, width) or (height, width, channels) of the images that the samples are.
    groups : tuple of str, optional
        Group of each sample, such as its patient or batch: samples of a group stay together where
        samples are split.
    group_column : str
        Where the groups are from.
    naming : Naming, optional
        How features were renamed and collapsed; a model keeps it and does the same to other data.

    Examples
    --------
    >>> import numpy as np
    >>> data = Dataset(np.eye(3), np.array([0, 1, 1]), class_names=("healthy", "ill"))
    >>> data
    Dataset(3 samples x 3 features, float64, classes: healthy 1, ill 2)
    >>> data.labels
    array(['healthy', 'ill', 'ill'], dtype='<U7')
    """

    X: Matrix
    y: NDArray[Any] | None = None
    feature_names: tuple[str, ...] | None = None
    sample_names: tuple[str, ...] | None = None
    class_names: tuple[str, ...] | None = None
    source: str = ""
    sha256: str | None = None
    notes: tuple[str, ...] = ()
    image_shape: tuple[int, ...] | None = None
    groups: tuple[str, ...] | None = None
    group_column: str = ""
    naming: Naming | None = None

    def __post_init__(self) -> None:
        if getattr(self.X, "ndim", None) != 2:
            raise InvalidInputError(
                "Dataset: `X` must be a two-dimensional array or CSR matrix, samples by features."
            )
        if self.X.dtype not in (np.float32, np.float64) and (
            self.X.dtype != np.uint8 or sp.issparse(self.X)
        ):
            raise InvalidInputError(
                f"Dataset: `X` must be float32, float64 or dense uint8, got {self.X.dtype}; use"
                f" X.astype."
            )
        if sp.issparse(self.X) and self.X.format != "csr":
            raise InvalidInputError(
                f"Dataset: a sparse `X` must be CSR, got {self.X.format}; use X.tocsr()."
            )
        _check_length("feature_names", self.feature_names, self.n_features)
        _check_length("sample_names", self.sample_names, self.n_samples)
        _check_length("groups", self.groups, self.n_samples)
        if self.image_shape is not None and math.prod(self.image_shape) != self.n_features:
            raise InvalidInputError(
                f"Dataset: images of {self.image_shape} do not have {self.n_features} values."
            )
        self._check_y()

    def _check_y(self) -> None:
        if self.y is None:
            return
        _check_length("y", self.y, self.n_samples)
        if self.class_names is None:
            return
        if not np.issubdtype(self.y.dtype, np.integer):
            raise InvalidInputError("Dataset: with `class_names`, `y` must contain integer codes.")
        if self.y.size and not 0 <= self.y.min() <= self.y.max() < len(self.class_names):
            raise InvalidInputError(
                f"Dataset: with {len(self.class_names)} class names, `y` must be in"
                f" 0..{len(self.class_names) - 1}, got {self.y.min()}..{self.y.max()}."
            )

    @property
    def n_samples(self) -> int:
        """Number of rows of `X`."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns of `X`."""
        return int(self.X.shape[1])

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 without labels or with a continuous target."""
        return len(self.class_names or ())

    @property
    def is_sparse(self) -> bool:
        """Whether `X` is a SciPy CSR matrix."""
        return bool(sp.issparse(self.X))

    @property
    def is_survival(self) -> bool:
        """Whether `y` holds events and times."""
        return self.y is not None and self.y.dtype.names == ("event", "time")

    @property
    def labels(self) -> NDArray[Any] | None:
        """The class name of each sample, or the continuous target."""
        if self.y is None or self.class_names is None:
            return self.y
        names: NDArray[Any] = np.asarray(self.class_names)
        if any(str(name).endswith("\0") for name in self.class_names):  # NumPy's text drops it
            names = np.asarray(self.class_names, dtype=object)
        named: NDArray[Any] = names[self.y]
        return named

    @property
    def class_counts(self) -> dict[str, int]:
        """Number of samples of each class, in the order of `class_names`."""
        if self.y is None or self.class_names is None:
            return {}
        counts = np.bincount(self.y, minlength=len(self.class_names))
        return dict(zip(self.class_names, counts.tolist(), strict=True))

    def feature_label(self, feature: int) -> str:
        """Name of a feature, or ``"feature 7"`` if features have no names."""
        return self.feature_names[feature] if self.feature_names else f"feature {feature}"

    def take(self, samples: Sequence[int] | NDArray[Any]) -> Dataset:
        """Return a data set with only these samples, in this order.

        Examples
        --------
        >>> Dataset(np.eye(3), sample_names=("a", "b", "c")).take([2, 0]).sample_names
        ('c', 'a')
        """
        rows = np.arange(self.n_samples)[np.asarray(samples)]
        names, groups = self.sample_names, self.groups
        return replace(
            self,
            groups=None if groups is None else tuple(groups[row] for row in rows),
            X=self.X[rows],
            y=None if self.y is None else self.y[rows],
            sample_names=None if names is None else tuple(names[row] for row in rows),
        )

    def describe(self) -> str:
        """Return a summary as text: size, classes, names, source and notes.

        Examples
        --------
        >>> print(Dataset(np.eye(2), np.array([0, 1]), class_names=("a", "b")).describe())
        samples   2
        features  2, float64, dense, 0.0 MB
        classes   a 1 (50%), b 1 (50%)
        """
        density = ""
        if self.is_sparse:
            density = f" with {100 * self.X.nnz / max(1, self.n_samples * self.n_features):.2g}%"
            density += " of the values stored"
        storage = ("sparse" if self.is_sparse else "dense") + density
        if isinstance(self.X, Samples) and self.X.is_on_disk:
            storage = "sparse on disk" if self.X.is_sparse else "dense on disk"
        lines = [
            f"samples   {self.n_samples}" + _some_names(self.sample_names),
            f"features  {self.n_features}, {self.X.dtype}, {storage},"
            f" {self.n_bytes / 1e6:.1f} MB" + _some_names(self.feature_names),
        ]
        if self.class_names is not None:
            percentages = (
                f"{name} {count} ({100 * count / max(1, self.n_samples):.0f}%)"
                for name, count in self.class_counts.items()
            )
            lines.append("classes   " + ", ".join(percentages))
        elif self.is_survival:
            assert self.y is not None
            n_events, times = int(self.y["event"].sum()), self.y["time"]
            lines.append(
                f"survival  {n_events} events, {self.n_samples - n_events} censored, times"
                f" {times.min():.4g} to {times.max():.4g}"
            )
        elif self.y is not None:
            low, high = (self.y.min(), self.y.max()) if self.y.size else (np.nan, np.nan)
            lines.append(f"target    {low:.4g} to {high:.4g}")
        if self.groups is not None:
            of = f" of {self.group_column!r}" if self.group_column else ""
            lines.append(f"groups    {len(set(self.groups))}{of}")
        if self.source:
            lines.append(f"source    {self.source}")
        if self.sha256:
            lines.append(f"sha256    {self.sha256}")
        lines.extend(f"note      {note}" for note in self.notes)
        return "\n".join(lines)

    @property
    def n_bytes(self) -> int:
        """Bytes of memory used by `X`."""
        if self.is_sparse:
            return int(self.X.data.nbytes + self.X.indices.nbytes + self.X.indptr.nbytes)
        return int(self.X.nbytes)

    def __repr__(self) -> str:
        parts = [f"{self.n_samples} samples x {self.n_features} features", str(self.X.dtype)]
        if self.is_sparse:
            parts.append(f"sparse with {self.X.nnz} stored values")
        if self.class_names is not None and len(self.class_names) <= 6:
            counts = (f"{name} {count}" for name, count in self.class_counts.items())
            parts.append("classes: " + ", ".join(counts))
        elif self.class_names is not None:
            parts.append(f"{len(self.class_names)} classes")
        elif self.is_survival:
            parts.append("survival times")
        elif self.y is not None:
            parts.append("continuous target")
        else:
            parts.append("no labels")
        if self.source:
            parts.append(f"source={self.source!r}")
        return f"Dataset({', '.join(parts)})"


def _check_length(name: str, values: Any, expected: int) -> None:
    if values is not None and len(values) != expected:
        raise InvalidInputError(
            f"Dataset: `{name}` has {len(values)} entries, but `X` needs {expected}."
        )


def _some_names(names: tuple[str, ...] | None) -> str:
    if not names:
        return ""
    shown = ", ".join(names[:3])
    return f" ({shown}, ...)" if len(names) > 3 else f" ({shown})"
