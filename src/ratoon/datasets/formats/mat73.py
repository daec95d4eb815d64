"""MATLAB files of version 7.3, which are HDF5 files with conventions of their own.

MATLAB stores columns first, so arrays are transposed; a sparse matrix is a group with ``data``,
``ir`` (row indices) and ``jc`` (column starts); a cell is an array of references, used for text,
which is stored as 16-bit codes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ratoon.datasets.arrays import check_compressed
from ratoon.datasets.files import Limits
from ratoon.datasets.formats.hdf5 import child, is_dataset, load, members, open_hdf5
from ratoon.datasets.formats.named_arrays import (
    Shape,
    choose_label,
    choose_matrix,
    choose_names,
    describe_choice,
)
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.errors import FormatError

_MOST_CELLS = 2_000_000


def read_mat73(path: Path, options: ReadOptions) -> Parsed:
    """Read the data and label variables of a v7.3 ``.mat`` file."""
    limits = options.limits
    with open_hdf5(path) as file:
        variables = {k: v for k, v in members(file, path).items() if not k.startswith("#")}
        numeric = {name: shape for name, v in variables.items() if (shape := _shape(v, path))}
        cells = {name: v.shape[::-1] for name, v in variables.items() if _class(v) == "cell"}
        matrix = choose_matrix(path, numeric, options)
        n_samples, n_features = numeric[matrix]
        label = choose_label(path, {**numeric, **cells}, options, n_samples)
        taken = {matrix, label or ""}
        features = choose_names(cells, "feature", n_features, taken)
        samples = choose_names(cells, "sample", n_samples, taken)

        def text(name: str | None) -> list[str] | None:
            return None if name is None else _strings(file, variables[name], path, limits)

        labels: list[Any] | None = text(label) if label in cells else None
        if label in numeric:
            labels = _array(variables[label], path, limits).reshape(-1).tolist()
        return Parsed(
            _array(variables[matrix], path, limits),
            labels=labels,
            feature_names=text(features),
            sample_names=text(samples),
            label_source=f"variable {label!r}",
            notes=describe_choice({**numeric, **cells}, matrix, label, n_samples, "variable"),
        )


def _class(item: Any) -> str:
    name = item.attrs.get("MATLAB_class", b"") if is_dataset(item) else b""
    return name.decode("ascii", "replace") if isinstance(name, bytes) else str(name)


def _shape(item: Any, path: Path) -> Shape | None:
    """Return the shape of a numeric variable in MATLAB, None for any other variable."""
    if is_dataset(item):
        numeric = item.dtype.kind in "biuf" and _class(item) not in ("char", "cell")
        return item.shape[::-1] if numeric and item.shape else None
    if "MATLAB_sparse" not in item.attrs or not is_dataset(child(item, "jc", path)):
        return None
    n_columns = max(0, child(item, "jc", path).size - 1)
    return int(item.attrs["MATLAB_sparse"]), n_columns


def _array(item: Any, path: Path, limits: Limits) -> Any:
    if is_dataset(item):
        return load(item, path, limits).T
    shape = _shape(item, path) or (0, 0)
    limits.check_shape(f"{path}: {item.name}", *shape)
    starts = load(child(item, "jc", path), path, limits)
    # MATLAB does not store the values of a matrix without entries.
    values = indices = np.empty(0, dtype=np.int64)
    if "data" in item:
        values = load(child(item, "data", path), path, limits)
        indices = load(child(item, "ir", path), path, limits)
    if values.ndim != 1:
        raise FormatError(
            f"{path}: {item.name} has stored values of shape {values.shape}, expected one"
            " dimension; the file is damaged."
        )
    where = f"{path}: {item.name}"
    check_compressed(starts, indices, values.size, shape[1], shape[0], source=where)
    indices, starts = indices.astype(np.int64), starts.astype(np.int64)
    return sp.csc_matrix((values, indices, starts), shape=shape)


def _strings(file: Any, cell: Any, path: Path, limits: Limits) -> list[str]:
    import h5py

    references = load(cell, path, limits).reshape(-1)
    if references.size > _MOST_CELLS or h5py.check_ref_dtype(cell.dtype) is None:
        raise FormatError(f"{path}: {cell.name} is not a cell with text, or too large.")
    found = []
    for reference in references:
        # A reference refers to an object of the same file; `load` checks it like any other.
        codes = load(file[reference], path, limits)
        if codes.dtype.kind not in "iu" or codes.size > 2**16:
            raise FormatError(f"{path}: {cell.name} contains something other than text.")
        found.append("".join(map(chr, codes.reshape(-1).tolist())).strip("\0 "))
    return found
