"""The arguments that `read` passes to a reader, and what a reader returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ratoon.datasets.files import Limits
from ratoon.datasets.missing import Missing
from ratoon.datasets.tables.labels import Task

Orientation: TypeAlias = Literal["auto", "samples_in_rows", "samples_in_columns"]


@dataclass(frozen=True)
class SampleSheet:
    """A table with one row per sample: the sample names, and columns of text."""

    source: str
    names: tuple[str, ...]
    columns: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class ReadOptions:
    """The arguments of `ratoon.datasets.read`, which documents them.

    ``columns`` names columns with one value per sample that are neither features nor labels.
    """

    label: str | int | None = None
    matrix: str | None = None
    index: str | None = None
    ignore: tuple[str, ...] = ()
    sample_sheet: SampleSheet | None = None
    orientation: Orientation = "auto"
    task: Task = "auto"
    missing: Missing = "error"
    unlabelled: Literal["error", "drop"] = "error"
    duplicates: Literal["error", "keep"] = "error"
    duplicate_features: str = "keep"
    sparse: bool | Literal["auto"] = "auto"
    dtype: str = "float32"
    delimiter: str | None = None
    decimal: Literal["auto", ".", ","] = "auto"
    size: tuple[int, int] | None = None
    color: Literal["auto", "gray", "rgb"] = "auto"
    limits: Limits = field(default_factory=Limits)
    columns: tuple[str, ...] = ()


@dataclass
class Parsed:
    """The content of a file, before labels are encoded and values are checked."""

    values: Any
    labels: Sequence[Any] | None = None
    feature_names: Sequence[str] | None = None
    sample_names: Sequence[str] | None = None
    class_names: Sequence[str] | None = None
    label_source: str = "labels"
    notes: list[str] = field(default_factory=list)
    image_shape: tuple[int, ...] | None = None
    columns: dict[str, Sequence[Any]] = field(default_factory=dict)
