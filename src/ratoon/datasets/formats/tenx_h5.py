"""10x Genomics HDF5 files: ``filtered_feature_bc_matrix.h5`` of Cell Ranger 2 and later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import scipy.sparse as sp

from ratoon.datasets.arrays import check_compressed
from ratoon.datasets.formats.hdf5 import child, is_dataset, load, open_hdf5, texts
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.errors import FormatError, InvalidInputError

_PARTS = {"barcodes", "data", "indices", "indptr", "shape"}


def tenx_groups(file: Any) -> list[str]:
    """Return the names of the groups of an open HDF5 file that hold a 10x matrix.

    Links are not followed, so a group behind a link is not among them.
    """
    return [name for name in file if _is_own(file, name) and _holds_matrix(file[name])]


def _is_own(group: Any, name: str) -> bool:
    import h5py

    return isinstance(group.get(name, getlink=True), h5py.HardLink)


def _holds_matrix(item: Any) -> bool:
    return not is_dataset(item) and set(item) >= _PARTS


def read_tenx_h5(path: Path, options: ReadOptions) -> Parsed:
    """Read cells x features; files of Cell Ranger 2 have one group per genome (``matrix=``)."""
    if options.label is not None and options.sample_sheet is None:
        raise InvalidInputError(
            f"{path}: a 10x file has no labels, so label= does not apply.\n"
            "  Pass a table of barcodes and labels as sample_sheet=."
        )
    limits = options.limits
    with open_hdf5(path) as file:
        found = tenx_groups(file)
        name = options.matrix or (found[0] if len(found) == 1 else None)
        if name not in found:
            raise InvalidInputError(
                f"{path}: pass matrix= with one of {', '.join(map(repr, found)) or 'none'}."
            )
        group = child(file, str(name), path)
        shape = load(child(group, "shape", path), path, limits).tolist()
        if len(shape) != 2:
            raise FormatError(f"{path}: the shape of the matrix is {shape}; the file is damaged.")
        n_features, n_cells = map(int, shape)
        limits.check_shape(str(path), n_cells, n_features)
        values, indices, starts = (
            load(child(group, part, path), path, limits) for part in ("data", "indices", "indptr")
        )
        check_compressed(starts, indices, values.size, n_cells, n_features, source=str(path))
        names, kinds = _features(group, path, options)
        samples = texts(child(group, "barcodes", path), path, limits)
    for what, count, expected in (
        ("features", len(names), n_features),
        ("barcodes", len(samples), n_cells),
    ):
        if count != expected:
            raise FormatError(f"{path}: {count} {what} for {expected}; the file is damaged.")
    matrix = sp.csr_matrix((values, indices, starts), shape=(n_cells, n_features))
    notes = ["samples are the cells of the 10x matrix"]
    if len(kinds) > 1:
        notes.append(f"features of several types: {', '.join(sorted(kinds))}")
    return Parsed(matrix, sample_names=samples, feature_names=names, notes=notes)


def _features(group: Any, path: Path, options: ReadOptions) -> tuple[list[str], set[str]]:
    """Return the identifiers of the features, and their types."""
    if "features" not in group:  # Cell Ranger 2
        return texts(child(group, "genes", path), path, options.limits), set()
    features = child(group, "features", path)
    names = texts(child(features, "id", path), path, options.limits)
    if "feature_type" not in features:
        return names, set()
    return names, set(texts(child(features, "feature_type", path), path, options.limits))
