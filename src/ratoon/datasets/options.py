"""What `read` was asked for, and what a reader hands back to it."""

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
    """A table about samples: their names, and columns of text aligned with them."""

    source: str
    names: tuple[str, ...]
    columns: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class ReadOptions:
    """The arguments of `ratoon.datasets.read`; see there."""

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
    sparse: bool | Literal["auto"] = "auto"
    dtype: str = "float32"
    limits: Limits = field(default_factory=Limits)


@dataclass
class Parsed:
    """A file's content in the file's own terms, before labels are coded and values checked."""

    values: Any
    labels: Sequence[Any] | None = None
    feature_names: Sequence[str] | None = None
    sample_names: Sequence[str] | None = None
    class_names: Sequence[str] | None = None
    label_source: str = "labels"
    notes: list[str] = field(default_factory=list)
