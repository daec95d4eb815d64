"""MATLAB files up to version 7 (the v5 format), read by SciPy after a survey of our own.

SciPy unpacks whatever a variable declares and hands sparse index arrays on unseen.  So the file is
walked first, with nothing kept: each variable's kind, shape and unpacked size.  Only numbers, text
and cells of text are ever handed to SciPy; objects, functions and structures are passed over.
"""

from __future__ import annotations

import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from ratoon.datasets.mat_survey import Variable, survey_mat
from ratoon.datasets.named_arrays import choose_label, choose_matrix, choose_names
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.errors import FormatError


def read_mat(path: Path, options: ReadOptions) -> Parsed:
    """Read the data and label variables of a v5 ``.mat`` file."""
    variables = survey_mat(path, options.limits)
    tables = {name: v.shape for name, v in variables.items() if v.is_numeric}
    named = {name: v.shape for name, v in variables.items() if v.is_numeric or v.is_text}
    matrix = choose_matrix(path, tables, options)
    n_samples, n_features = tables[matrix]
    label = choose_label(path, named, options, n_samples)
    taken = {matrix, label or ""}
    texts = {name: v.shape for name, v in variables.items() if v.is_text}
    features = choose_names(texts, "feature", n_features, taken)
    samples = choose_names(texts, "sample", n_samples, taken)

    wanted = [name for name in (matrix, label, features, samples) if name is not None]
    loaded = _load(path, wanted, variables)
    notes = [] if label is None else [f"labels from variable {label!r}"]
    return Parsed(
        loaded[matrix],
        labels=None if label is None else _flat(loaded[label]),
        feature_names=None if features is None else _strings(loaded[features]),
        sample_names=None if samples is None else _strings(loaded[samples]),
        label_source=f"variable {label!r}",
        notes=notes,
    )


def _load(path: Path, names: list[str], variables: dict[str, Variable]) -> dict[str, Any]:
    import scipy.io
    from scipy.io.matlab import MatReadError

    try:
        with warnings.catch_warnings():
            # A variable stored twice, or an oddity SciPy would only warn of: we want neither.
            warnings.simplefilter("error")
            loaded = scipy.io.loadmat(path, variable_names=names)
    except (
        MatReadError,
        zlib.error,
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        OSError,
        NotImplementedError,
        EOFError,
        AttributeError,
        OverflowError,
        MemoryError,
        Warning,
        UnicodeError,
        AssertionError,
    ) as error:
        raise FormatError(
            f"{path}: damaged, or not a MATLAB file of version 5 to 7 ({error}).\n"
            "  Copy or download it again, or save it anew with MATLAB's save -v7."
        ) from None
    for name in names:
        if name not in loaded or tuple(loaded[name].shape) != variables[name].shape:
            raise FormatError(f"{path}: variable {name!r} is not what the file announces.")
    return dict(loaded)


def _flat(values: Any) -> list[Any]:
    """One label per sample, whether numbers, a character matrix or a cell of strings."""
    array = np.asarray(values.todense() if hasattr(values, "todense") else values)
    if array.dtype.kind in "OU":
        return _strings(array)
    if array.ndim == 2 and 1 not in array.shape:
        raise FormatError(f"labels have shape {array.shape}; store one class number per sample.")
    return list(array.reshape(-1).tolist())


def _strings(array: Any) -> list[str]:
    return [
        "".join(map(str, np.asarray(cell).reshape(-1).tolist())).strip()
        for cell in np.asarray(array).reshape(-1).tolist()
    ]
