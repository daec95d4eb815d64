"""Choose the data, the labels and the names among the named arrays of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ratoon.datasets.options import ReadOptions
from ratoon.datasets.tables.labels import LABEL_NAMES
from ratoon.errors import InvalidInputError, near

Shape = tuple[int, ...]

_DATA_NAMES = ("x", "data", "features", "fea", "samples", "expression")
_FEATURE_NAMES = ("feature_names", "features", "genes", "gene_names", "columns", "var_names")
_SAMPLE_NAMES = ("sample_names", "samples", "rows", "obs_names", "ids")
_CLASS_NAMES = ("class_names", "classes", "target_names", "label_names")


def choose_matrix(path: Path, shapes: Mapping[str, Shape], options: ReadOptions) -> str:
    """Return the name of the data array.

    Examples
    --------
    >>> choose_matrix(Path("a.npz"), {"X": (5, 9), "y": (5,)}, ReadOptions())
    'X'
    """
    if options.matrix is not None:
        return _existing(path, options.matrix, shapes, "matrix")
    for wanted in _DATA_NAMES:
        for name, shape in shapes.items():
            if name.lower() == wanted and len(shape) == 2:
                return name
    tables = [name for name, shape in shapes.items() if len(shape) == 2 and min(shape) > 1]
    if len(tables) == 1:
        return tables[0]
    what = "no table" if not tables else f"several tables ({', '.join(tables)})"
    raise InvalidInputError(
        f"{path}: {what} of numbers among {_listing(shapes)}.\n"
        "  Pass the name of the array with the samples, for instance matrix='X'."
    )


def choose_label(
    path: Path, shapes: Mapping[str, Shape], options: ReadOptions, n_samples: int
) -> str | None:
    """Return the name of the label array, or None if there is no such array and no label=."""
    if options.label is not None:
        return _existing(path, str(options.label), shapes, "label")
    for wanted in LABEL_NAMES:
        for name, shape in shapes.items():
            if name.lower() == wanted and is_vector(shape, n_samples):
                return name
    return None


def describe_choice(
    shapes: Mapping[str, Shape], matrix: str, label: str | None, n_samples: int, kind: str
) -> list[str]:
    """Return notes on the chosen arrays, and on those that could be labels.

    Examples
    --------
    >>> describe_choice({"A": (5, 9), "y": (4,), "b": (5,)}, "A", None, 5, "array")
    ["samples from array 'A', the only table", "array 'y' (4) does not have one label for each of
    the 5 samples and was ignored", "arrays with one value per sample: 'b'; pass label= if one has
    the labels"]
    """
    notes = [] if matrix.lower() in _DATA_NAMES else [f"samples from {kind} {matrix!r}"]
    if notes and sum(len(shape) == 2 and min(shape) > 1 for shape in shapes.values()) == 1:
        notes[0] += ", the only table"
    if label is not None:
        return [*notes, f"labels from {kind} {label!r}"]
    odd = [name for name in shapes if name.lower() in LABEL_NAMES and name != matrix]
    for name in odd:
        size = "x".join(map(str, shapes[name]))
        notes.append(
            f"{kind} {name!r} ({size}) does not have one label for each of the {n_samples} samples"
            f" and was ignored"
        )
    others = [
        repr(name)
        for name, shape in shapes.items()
        if name not in (matrix, *odd)
        and name.lower() not in _SAMPLE_NAMES
        and is_vector(shape, n_samples)
    ]
    if others:
        notes.append(
            f"{kind}s with one value per sample: {', '.join(others[:5])}; pass label= if one has"
            " the labels"
        )
    return notes


def choose_names(
    shapes: Mapping[str, Shape], kind: str, size: int | None, taken: set[str]
) -> str | None:
    """Return the array with the names of features, samples or classes, if there is one."""
    candidates = {"feature": _FEATURE_NAMES, "sample": _SAMPLE_NAMES, "class": _CLASS_NAMES}[kind]
    for wanted in candidates:
        for name, shape in shapes.items():
            fits = size is None or is_vector(shape, size)
            if name.lower() == wanted and name not in taken and fits:
                return name
    return None


def is_vector(shape: Shape, size: int) -> bool:
    """Whether an array of this shape has ``size`` values in one row or column."""
    return size == max(shape, default=1) and all(n in (1, size) for n in shape)


def _existing(path: Path, wanted: str, shapes: Mapping[str, Shape], parameter: str) -> str:
    if wanted in shapes:
        return wanted
    raise InvalidInputError(
        f"{path}: there is no array {wanted!r}; the file has {_listing(shapes)}."
        f"{near(wanted, shapes)}\n"
        f"  Pass one of these names as {parameter}=."
    )


def _listing(shapes: Mapping[str, Shape]) -> str:
    if not shapes:
        return "no arrays of numbers"
    return ", ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in shapes.items())
