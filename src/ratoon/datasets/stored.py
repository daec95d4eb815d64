"""Open files that are too large for memory: labels are read, samples stay on disk.

The result is a `Dataset` whose ``X`` is `DiskRows`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ratoon.datasets.dataset import Dataset
from ratoon.datasets.files import Limits
from ratoon.datasets.formats.hdf5 import (
    check_storage,
    child,
    is_dataset,
    load,
    members,
    open_hdf5,
)
from ratoon.datasets.formats.named_arrays import choose_label, choose_matrix, choose_names
from ratoon.datasets.optional import require
from ratoon.datasets.options import ReadOptions
from ratoon.datasets.tables.labels import Task, encode_labels
from ratoon.errors import FormatError, InvalidInputError
from ratoon.samples.blocks import ParquetReader
from ratoon.samples.on_disk import BlockReader, DiskRows, MapReader

PARQUET_SUFFIX = ".parquet"
HDF5_SUFFIXES = (".h5", ".hdf5")


def can_stay_on_disk(path: Path) -> bool:
    """Whether `open_stored` can open the file: a NumPy array, or HDF5 that is not AnnData."""
    if path.suffix == ".npy":
        return True
    if path.suffix not in HDF5_SUFFIXES or not path.is_file():
        return False
    with open_hdf5(path) as file:
        return not {"obs", "var"} <= set(file)


def open_stored(
    path: str | Path, *, label: str | None = None, matrix: str | None = None, task: Task = "auto"
) -> Dataset:
    """Open a table that is too large for memory; samples are read when they are needed.

    Parameters
    ----------
    path : path
        ``.npy``: one array, samples in rows.  ``.h5`` or ``.hdf5``: arrays by name.  ``.parquet``,
        or a folder of such files: one row per sample, read by row groups.
    label : str, optional
        For HDF5, the array with the labels; by default ``y``, ``label``, ``class``, ...  For
        ``.npy``, another ``.npy`` file with the labels.  For Parquet, the column.
    matrix : str, optional
        For HDF5, the array with the samples, if it is not ``X``.
    task : {"auto", "classification", "regression"}
        Whether labels are classes or a continuous target.

    Returns
    -------
    Dataset

    Raises
    ------
    FormatError, InvalidInputError
        If the file is damaged, or has no array of the given name.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "X.npy"), np.eye(4, dtype=np.float32))
    ...     np.save(Path(folder, "y.npy"), [0, 1, 1, 0])
    ...     data = open_stored(Path(folder, "X.npy"), label=str(Path(folder, "y.npy")))
    >>> data.X.shape, data.class_counts
    ((4, 4), {'0': 2, '1': 2})
    """
    path = Path(path)
    if path.is_dir() or path.suffix == PARQUET_SUFFIX:
        return _open_parquet(path, label, matrix, task)
    if not path.is_file():
        raise InvalidInputError(f"{path}: no such file.")
    if path.suffix == ".npy":
        return _open_npy(path, label, task)
    return _open_hdf5(path, label, matrix, task)


def _open_npy(path: Path, label: str | None, task: Task) -> Dataset:
    X = DiskRows(MapReader(_mapped(path)))
    notes = ("samples stay on disk",)
    if label is None:
        return Dataset(X, source=str(path), notes=notes)
    y, classes = encode_labels(np.array(_mapped(Path(label))), task=task, source=label)
    return Dataset(X, y, class_names=classes, source=str(path), notes=notes)


def _mapped(path: Path) -> Any:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise FormatError(
            f"{path}: not a complete .npy file ({error}); copy or download it again."
        ) from None


def _open_parquet(path: Path, label: str | None, matrix: str | None, task: Task) -> Dataset:
    datasets = require("pyarrow.dataset", f"to read {path.name}")
    arrow = require("pyarrow", f"to read {path.name}")
    if matrix is not None:
        raise InvalidInputError(f"{path}: a Parquet file has columns, and no array {matrix!r}.")
    if not path.exists():
        raise InvalidInputError(f"{path}: no such file.")
    try:
        found = datasets.dataset(str(path), format="parquet")
        columns = list(found.schema.names)
        if label is not None and label not in columns:
            raise InvalidInputError(f"{path}: there is no column {label!r} for the labels.")
        names = [name for name in columns if name != label]
        rows = DiskRows(ParquetReader(found, names))
        y, classes = None, None
        if label is not None:
            values = found.to_table(columns=[label]).column(label).to_numpy(zero_copy_only=False)
            y, classes = encode_labels(values, task=task, source=f"{path}, column {label!r}")
    except (arrow.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise FormatError(f"{path}: damaged, cut off or not Parquet ({reason}).") from None
    notes = ("samples stay on disk and are read by row groups",)
    return Dataset(rows, y, tuple(names), None, classes, source=str(path), notes=notes)


def _open_hdf5(path: Path, label: str | None, matrix: str | None, task: Task) -> Dataset:
    h5py = require("h5py", f"to read {path.name}")
    limits = Limits()
    with open_hdf5(path) as file:
        shapes = {
            name: item.shape for name, item in members(file, path).items() if is_dataset(item)
        }
        options = ReadOptions(label=label, matrix=matrix)
        chosen = choose_matrix(path, shapes, options)
        n_samples, n_features = shapes[chosen]
        found = choose_label(path, shapes, options, n_samples)
        notes = [f"samples from array {chosen!r}, which stays on disk"]
        y, classes = None, None
        if found is not None:
            labels = load(child(file, found, path), path, limits)
            y, classes = encode_labels(labels, task=task, source=f"{path}, array {found!r}")
            notes.append(f"labels from array {found!r}")

        def text(kind: str, size: int) -> tuple[str, ...] | None:
            name = choose_names(shapes, kind, size, {chosen, found or ""})
            if name is None:
                return None
            return tuple(map(str, load(child(file, name, path), path, limits).reshape(-1)))

        features, samples = text("feature", n_features), text("sample", n_samples)
        check_storage(child(file, chosen, path), path)
    # The file stays open as long as the rows are referenced.
    rows = DiskRows(BlockReader(h5py.File(path, "r")[chosen]))
    return Dataset(rows, y, features, samples, classes, source=str(path), notes=tuple(notes))
