"""Encode the labels of a file as class codes or as a continuous target."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ratoon.errors import FormatError, InvalidInputError

Task: TypeAlias = Literal["auto", "classification", "regression"]

MISSING_WORDS = frozenset(
    {"", "na", "n/a", "nan", "null", "none", "?", "-", ".", "#n/a", "missing"}
)
"""Words for a missing value, in lower case."""

LABEL_NAMES = ("y", "label", "labels", "class", "classes", "target", "diagnosis", "outcome")
"""Names of a column or variable that is used as the label by default, in order of preference."""


def encode_labels(
    values: Any, *, task: Task = "auto", source: str = "y"
) -> tuple[NDArray[Any], tuple[str, ...] | None]:
    """Return ``(y, class_names)``: codes and names of classes, or floats and None.

    With ``task="auto"``, text, booleans and integers (such as 1..K and -1/1) are classes; integers
    with very many distinct values, and other numbers, are a continuous target.

    Examples
    --------
    >>> encode_labels([-1, 1, 1])
    (array([0, 1, 1]), ('-1', '1'))
    >>> encode_labels([0.5, 1.25])
    (array([0.5 , 1.25]), None)
    """
    labels = np.asarray(values)
    labels = labels.reshape(-1) if labels.size == max(labels.shape, default=0) else labels
    if labels.ndim != 1:
        raise FormatError(
            f"{source}: there must be one label per sample, but this array has shape"
            f" {labels.shape}.\n"
            "  Replace one-hot labels by the class number."
        )
    labels = _numbers_if_possible(labels)
    _refuse_missing(labels, source)
    if task == "regression":
        if labels.dtype.kind not in "biuf":
            raise FormatError(
                f"{source}: {labels[0]!s} is text, but a regression target must be a number.\n"
                "  Choose another label, or pass task='classification'."
            )
        return labels.astype(np.float64), None
    if task == "auto" and _looks_continuous(labels):
        return labels.astype(np.float64), None
    classes, codes = np.unique(labels, return_inverse=True)
    return codes.astype(np.int64), tuple(_class_name(value) for value in classes.tolist())


def _numbers_if_possible(labels: NDArray[Any]) -> NDArray[Any]:
    if labels.dtype.kind in "biuf":
        return labels
    if labels.dtype.kind == "U":
        text = np.char.strip(labels)
    else:
        text = np.array([_text(value) for value in labels.tolist()], dtype=str)
    try:
        return text.astype(np.float64)
    except ValueError:
        return text


def _text(value: Any) -> str:
    if value is None:
        return ""
    return (value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)).strip()


def is_missing_label(value: Any) -> bool:
    """Whether a label is missing.

    Examples
    --------
    >>> is_missing_label("NA"), is_missing_label(float("nan")), is_missing_label("ALL")
    (True, True, False)
    """
    return _text(value).lower() in MISSING_WORDS


def _refuse_missing(labels: NDArray[Any], source: str) -> None:
    if labels.dtype.kind == "f":
        missing = np.flatnonzero(np.isnan(labels))
    elif labels.dtype.kind == "U":
        words = [value for value in set(labels.tolist()) if is_missing_label(value)]
        missing = np.flatnonzero(np.isin(labels, words)) if words else np.empty(0, dtype=np.int64)
    else:
        return
    if missing.size:
        raise InvalidInputError(
            f"{source}: {missing.size} of {labels.size} samples have no label, the first is"
            f" sample {missing[0] + 1}.\n  Pass unlabelled='drop' to remove them."
        )


def _looks_continuous(labels: NDArray[Any]) -> bool:
    if labels.dtype.kind not in "iuf" or not labels.size:
        return False
    if labels.dtype.kind == "f" and not np.array_equal(labels, np.round(labels)):
        return True
    # Integers with many distinct values that hardly repeat are a measurement.
    n_distinct = np.unique(labels).size
    return bool(n_distinct > 20 and n_distinct > labels.size / 4)


def _class_name(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
