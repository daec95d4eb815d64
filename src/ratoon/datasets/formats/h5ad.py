"""AnnData files (``.h5ad``), read with h5py, without the anndata package.

``X`` or a layer is an array, or a group with ``data``, ``indices``, ``indptr``; ``obs`` and ``var``
are groups of columns, or, in old files, one table with named fields; a categorical column has codes
and categories.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ratoon.datasets.arrays import check_compressed
from ratoon.datasets.files import Limits
from ratoon.datasets.formats.hdf5 import child, is_dataset, load, members, open_hdf5, texts
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.datasets.tables.labels import LABEL_NAMES
from ratoon.errors import FormatError, InvalidInputError, near


def read_h5ad(path: Path, options: ReadOptions) -> Parsed:
    """Read ``X`` (or the layer ``matrix=``) and the ``obs`` column ``label=``."""
    with open_hdf5(path) as file:
        values = _matrix(choose_layer(file, options, path), path, options.limits)
        parsed = read_frames(file, path, options)
        parsed.values = values
        return parsed


def read_frames(file: Any, path: Path, options: ReadOptions) -> Parsed:
    """Read what describes samples and features: labels and names; the values are None."""
    limits = options.limits
    obs, var = child(file, "obs", path), child(file, "var", path)
    columns = _column_names(obs, path)
    label = _choose_label(columns, options, path)
    parsed = Parsed(
        None,
        feature_names=_index(var, path, limits),
        sample_names=_index(obs, path, limits),
    )
    if label is not None:
        parsed.labels = _column_of_obs(file, obs, label, path, limits)
        parsed.label_source = f"obs column {label!r}"
        parsed.notes.append(f"labels from obs column {label!r}")
    elif options.sample_sheet is None:
        parsed.notes.append(f"obs columns that could be the label: {', '.join(columns)}")
    return parsed


def _column_of_obs(file: Any, obs: Any, name: str, path: Path, limits: Limits) -> list[Any]:
    categories = _categories_in_uns(file, name, path, limits) if is_dataset(obs) else None
    if categories is not None:
        return list(_decode(load(obs, path, limits)[name], categories, path))
    return _column(obs, name, path, limits)


def choose_layer(file: Any, options: ReadOptions, path: Path) -> Any:
    """Return ``X``, or the layer that ``matrix=`` names."""
    if options.matrix is None or options.matrix == "X":
        return child(file, "X", path)
    layers = members(child(file, "layers", path), path) if "layers" in file else {}
    if options.matrix not in layers:
        raise InvalidInputError(
            f"{path}: there is no layer {options.matrix!r}; pass matrix= with one of X"
            + "".join(f", {name}" for name in layers)
            + f".{near(options.matrix, layers)}"
        )
    return layers[options.matrix]


def _matrix(item: Any, path: Path, limits: Limits) -> Any:
    if is_dataset(item):
        return load(item, path, limits)
    kind = _kind_of(item)
    n_rows, n_columns = matrix_shape(item, path)
    limits.check_shape(f"{path}: {item.name}", n_rows, n_columns)
    values, indices, starts = (
        load(child(item, part, path), path, limits) for part in ("data", "indices", "indptr")
    )
    if values.ndim != 1:
        raise FormatError(f"{path}: {item.name}/data is not one-dimensional; the file is damaged.")
    major, minor = (n_rows, n_columns) if kind == "csr" else (n_columns, n_rows)
    where = f"{path}: {item.name}"
    check_compressed(starts, indices, values.size, major, minor, source=where)
    build = sp.csr_matrix if kind == "csr" else sp.csc_matrix
    return build((values, indices, starts), shape=(n_rows, n_columns))


def _kind_of(item: Any) -> str:
    kind = str(item.attrs.get("encoding-type", item.attrs.get("h5sparse_format", "")))
    return kind.removesuffix("_matrix")


def matrix_shape(item: Any, path: Path) -> tuple[int, int]:
    """Return the number of rows and columns of a CSR or CSC matrix."""
    shape = item.attrs.get("shape", item.attrs.get("h5sparse_shape"))
    if _kind_of(item) not in ("csr", "csc") or shape is None or np.shape(shape) != (2,):
        raise FormatError(
            f"{path}: {item.name} is neither an array nor a CSR or CSC matrix;"
            " save it as one of these."
        )
    return int(shape[0]), int(shape[1])


def csr_parts(item: Any, path: Path) -> dict[str, Any] | None:
    """Return the three arrays of a CSR matrix by name; None for anything else."""
    if is_dataset(item) or _kind_of(item) != "csr":
        return None
    return {part: child(item, part, path) for part in ("data", "indices", "indptr")}


def bytes_on_disk(item: Any, path: Path) -> int | None:
    """Return the bytes of memory of a matrix that can stay on disk; None if it cannot."""
    if is_dataset(item):
        return int(item.size) * int(item.dtype.itemsize) if len(item.shape) == 2 else None
    parts = csr_parts(item, path)
    if parts is None or not all(map(is_dataset, parts.values())):
        return None
    return sum(int(part.size) * int(part.dtype.itemsize) for part in parts.values())


def _categories_in_uns(file: Any, label: str, path: Path, limits: Limits) -> list[str] | None:
    """Return the categories of a column of `obs` as files before anndata 0.7 store them."""
    name = f"{label}_categories"
    if "uns" not in file or name not in child(file, "uns", path):
        return None
    return texts(child(child(file, "uns", path), name, path), path, limits)


def _index(frame: Any, path: Path, limits: Limits) -> list[str]:
    if is_dataset(frame):
        table = load(frame, path, limits)
        return [_text(value) for value in table[_index_name(frame)].tolist()]
    return texts(child(frame, _index_name(frame), path), path, limits)


def _index_name(frame: Any) -> str:
    if is_dataset(frame):
        names = list(frame.dtype.names or ["index"])
        return next((name for name in ("index", "_index") if name in names), names[0])
    return str(frame.attrs.get("_index", "_index"))


def _column_names(frame: Any, path: Path) -> list[str]:
    names = (frame.dtype.names or ()) if is_dataset(frame) else members(frame, path)
    return [name for name in names if name not in (_index_name(frame), "__categories")]


def _column(frame: Any, name: str, path: Path, limits: Limits) -> list[Any]:
    if is_dataset(frame):
        return [_text(value) for value in load(frame, path, limits)[name].tolist()]
    item = child(frame, name, path)
    if is_dataset(item):
        values = load(item, path, limits)
        categories = members(frame, path).get("__categories")
        if categories is not None and name in categories:  # files before anndata 0.8
            return _decode(values, texts(child(categories, name, path), path, limits), path)
        return list(values.reshape(-1).tolist())
    if "categories" in item:
        codes = load(child(item, "codes", path), path, limits)
        return _decode(codes, texts(child(item, "categories", path), path, limits), path)
    if "mask" in item:  # nullable integers and booleans
        values = load(child(item, "values", path), path, limits).astype(object)
        values[load(child(item, "mask", path), path, limits).astype(bool)] = ""
        return list(values.tolist())
    raise FormatError(
        f"{path}: {item.name} is a column of an unknown type; store it as text,"
        " numbers or a categorical."
    )


def _decode(codes: NDArray[Any], categories: list[str], path: Path) -> list[str]:
    if codes.dtype.kind not in "iu" or codes.ndim != 1:
        raise FormatError(
            f"{path}: the codes of a categorical column are not integers; the file is damaged."
        )
    if codes.size and (codes.min() < -1 or codes.max() >= len(categories)):
        raise FormatError(
            f"{path}: a code of a categorical column has no category; the file is damaged."
        )
    return [categories[code] if code >= 0 else "" for code in codes.tolist()]


def _choose_label(columns: list[str], options: ReadOptions, path: Path) -> str | None:
    if options.sample_sheet is not None:
        return None
    if options.label is None:
        found = [name for name in columns if name.lower() in LABEL_NAMES]
        return found[0] if found else None
    if options.label not in columns:
        raise InvalidInputError(
            f"{path}: no obs column {options.label!r}; pass label= with one of"
            f" {', '.join(columns)}."
        )
    return str(options.label)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
