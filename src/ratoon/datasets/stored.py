"""Open files that are too large for memory: labels are read, samples stay on disk.

The result is a `Dataset` whose ``X`` is `DiskRows`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ratoon.datasets.dataset import Dataset, Naming
from ratoon.datasets.files import Limits
from ratoon.datasets.formats.h5ad import (
    bytes_on_disk,
    choose_layer,
    csr_parts,
    matrix_shape,
    read_frames,
)
from ratoon.datasets.formats.hdf5 import (
    check_storage,
    child,
    is_dataset,
    load,
    members,
    open_hdf5,
)
from ratoon.datasets.formats.named_arrays import choose_label, choose_matrix, choose_names
from ratoon.datasets.formats.tenx_h5 import tenx_groups
from ratoon.datasets.optional import require
from ratoon.datasets.options import ReadOptions
from ratoon.datasets.tables.labels import Task, encode_labels
from ratoon.datasets.tables.survival import survival_from
from ratoon.errors import FormatError, InvalidInputError, InvalidParameterError, near
from ratoon.samples.blocks import ParquetReader
from ratoon.samples.on_disk import BlockReader, DiskRows, MapReader
from ratoon.samples.on_disk_csr import CsrReader, DiskCsrRows

PARQUET_SUFFIX = ".parquet"
HDF5_SUFFIXES = (".h5", ".hdf5")


LARGEST_IN_MEMORY = 2**30
"""AnnData files whose ``X`` takes more bytes of memory stay on disk by default."""


def can_stay_on_disk(path: Path, *, on_disk: bool | Literal["auto"] = "auto") -> bool:
    """Whether a command opens a file with `open_stored` instead of reading it as a whole.

    That is the case for a NumPy array and for HDF5 with named arrays, always; and for AnnData whose
    ``X`` is a CSR matrix or an array, if it is larger than `LARGEST_IN_MEMORY`, or as ``on_disk``
    says.
    """
    if on_disk is False:
        return False
    if path.suffix == ".npy":
        return True
    if path.suffix not in (*HDF5_SUFFIXES, ".h5ad") or not path.is_file():
        return False
    with open_hdf5(path) as file:
        if not {"obs", "var"} <= set(file):
            return path.suffix in HDF5_SUFFIXES and not tenx_groups(file)
        if "X" not in file:
            return False
        n_bytes = bytes_on_disk(child(file, "X", path), path)
        return n_bytes is not None and (on_disk is True or n_bytes > LARGEST_IN_MEMORY)


def open_stored(
    path: str | Path,
    *,
    label: str | None = None,
    matrix: str | None = None,
    task: Task = "auto",
    group: str | None = None,
    time: str | None = None,
    event: str | None = None,
) -> Dataset:
    """Open a table that is too large for memory; samples are read when they are needed.

    Parameters
    ----------
    path : path
        ``.npy``: one array, samples in rows.  ``.h5`` or ``.hdf5``: arrays by name.  ``.h5ad``:
        ``X`` or a layer is a CSR matrix or an array.  ``.parquet``, or a folder of such files: one
        row per sample, read by row groups.
    label : str, optional
        For HDF5, the array with the labels; by default ``y``, ``label``, ``class``, ...  For
        ``.h5ad``, a column of ``obs``.  For ``.npy``, another ``.npy`` file with the labels.  For
        Parquet, the column.
    matrix : str, optional
        For HDF5, the array with the samples, or the layer of ``.h5ad``, if it is not ``X``.
    task : {"auto", "classification", "regression"}
        Whether labels are classes or a continuous target.
    group, time, event : str, optional
        Arrays, or columns of ``obs``, with the group of each sample, and for survival its time and
        event.  Not for ``.npy``.

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
    named = tuple(name for name in (group, time, event) if name is not None)
    if path.suffix == ".npy":
        if named:
            raise InvalidParameterError(
                f"{path}: a .npy file has no columns besides the samples, so there is no"
                f" {named[0]!r}."
            )
        return _open_npy(path, label, task)
    if (time is None) != (event is None):
        raise InvalidParameterError("`time` and `event` are given together or not at all.")
    with open_hdf5(path) as file:
        is_anndata = {"obs", "var"} <= set(file)
        columns = {name: _column(file, name, path, is_anndata) for name in named}
    opened = _open_h5ad if is_anndata else _open_hdf5
    data = opened(path, label, matrix, task)
    if time is not None and event is not None:
        y = survival_from(columns[time], columns[event], str(path), time, event)
        data = replace(data, y=y, class_names=None)
    if group is not None:
        data = replace(data, groups=tuple(map(str, columns[group])), group_column=group)
    names = [label, *named] if label is not None else named
    naming = Naming(label=label or "", columns=tuple(names), time=time or "", event=event or "")
    return replace(data, naming=naming) if names else data


def _column(file: Any, name: str, path: Path, is_anndata: bool) -> list[Any]:
    """Return a column of ``obs``, or an array."""
    if is_anndata:
        return list(read_frames(file, path, ReadOptions(label=name)).labels or ())
    found: list[Any] = load(child(file, name, path), path, Limits()).reshape(-1).tolist()
    return found


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
    except Exception as error:  # NumPy raises whatever a damaged header leads to
        reason = " ".join(str(error).split())[:200]
        raise FormatError(
            f"{path}: not a complete .npy file ({reason}); copy or download it again."
        ) from None


def _open_h5ad(path: Path, label: str | None, matrix: str | None, task: Task) -> Dataset:
    h5py = require("h5py", f"to read {path.name}")
    options = ReadOptions(label=label, matrix=matrix)
    limits = options.limits
    with open_hdf5(path) as file:
        chosen = choose_layer(file, options, path)
        name = str(chosen.name)
        parts = csr_parts(chosen, path)
        if parts is None and not is_dataset(chosen):
            raise InvalidInputError(
                f"{path}: {name} is not a CSR matrix, and only those can stay on disk.\n"
                "  Convert it with AnnData's X.tocsr(), or read it as a whole."
            )
        described = read_frames(file, path, options)
        for item in [chosen] if parts is None else parts.values():
            check_storage(item, path)
    # The file stays open as long as the rows are referenced.
    stored = h5py.File(path, "r")[name]
    where = f"{path}: {name}"
    rows: DiskRows
    if parts is None:
        rows = DiskRows(BlockReader(stored))
    else:
        values, indices, starts = (stored[part] for part in ("data", "indices", "indptr"))
        n_rows, n_columns = matrix_shape(stored, path)
        limits.check_shape(where, n_rows, n_columns)
        if starts.shape != (n_rows + 1,):
            raise FormatError(f"{where}: {n_rows} rows but {starts.shape} starts; it is damaged.")
        rows = DiskCsrRows(CsrReader(values, indices, starts, n_columns, source=where))
    y, classes = None, None
    if described.labels is not None:
        y, classes = encode_labels(
            described.labels, task=task, source=f"{path}, {described.label_source}"
        )
    return Dataset(
        rows,
        y,
        tuple(described.feature_names or ()),
        tuple(described.sample_names or ()),
        classes,
        source=str(path),
        notes=(*described.notes, f"samples from {name}, which stays on disk"),
    )


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
            raise InvalidInputError(
                f"{path}: there is no column {label!r} for the labels.{near(label, columns)}"
            )
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
