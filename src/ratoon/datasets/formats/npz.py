"""NumPy archives: ``X`` and ``y`` by name, or one SciPy sparse matrix; pickles are refused."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy
from numpy.typing import NDArray

from ratoon.datasets.arrays import check_compressed
from ratoon.datasets.files import Limits, open_regular
from ratoon.datasets.formats.named_arrays import (
    choose_label,
    choose_matrix,
    choose_names,
    describe_choice,
)
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.errors import FormatError, RatoonError

_MOST_MEMBERS = 10_000
_SPARSE_PARTS = {"indices", "indptr", "format", "shape", "data"}


def read_npz(path: Path, options: ReadOptions) -> Parsed:
    """Read a ``.npz`` of named arrays, or one written by `scipy.sparse.save_npz`."""
    with _archive(path, options.limits) as members:
        shapes = {name: shape for name, (shape, _) in members.headers.items()}
        if _SPARSE_PARTS.issubset(shapes):
            values: Any = _sparse(path, members, options.limits)
            rest = {name: shape for name, shape in shapes.items() if name not in _SPARSE_PARTS}
            name, taken = "data", set(_SPARSE_PARTS)
        else:
            name = choose_matrix(path, shapes, options)
            values, rest, taken = members.load(name), shapes, {name}
        if values.ndim != 2:
            raise FormatError(
                f"{path}: {name!r} has {values.ndim} dimensions; samples by features need two."
            )
        n_samples, n_features = values.shape
        label = choose_label(path, rest, options, n_samples)
        taken.add(label or "")

        def text(kind: str, size: int | None) -> list[str] | None:
            found = choose_names(rest, kind, size, taken)
            return None if found is None else [str(v) for v in members.load(found).reshape(-1)]

        return Parsed(
            values,
            labels=None if label is None else members.load(label).reshape(-1).tolist(),
            feature_names=text("feature", n_features),
            sample_names=text("sample", n_samples),
            class_names=text("class", None),
            label_source=f"array {label!r}",
            notes=describe_choice(rest, name, label, n_samples, "array"),
        )


class _Members:
    """The arrays of an archive; their shapes are checked before any is unpacked."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, limits: Limits) -> None:
        self._path, self._archive, self._limits = path, archive, limits
        self.headers: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}
        if len(archive.infolist()) > _MOST_MEMBERS:
            raise FormatError(
                f"{path}: the archive has more than {_MOST_MEMBERS} files, which is refused."
            )
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            if info.filename == name:
                continue
            if name in self.headers:
                raise FormatError(
                    f"{path}: the archive holds two arrays of the name {name!r}, and readers differ"
                    " in which one they take.\n  Save it again with numpy.savez."
                )
            limits.check_expanded(f"{path}, array {name!r}", info.file_size, info.compress_size)
            with archive.open(info) as member:
                self.headers[name] = self._header(name, member, info.file_size)
        if not self.headers:
            raise FormatError(
                f"{path}: a zip archive without NumPy arrays (.npy); save it with numpy.savez."
            )

    def _header(
        self, name: str, member: IO[bytes], n_bytes: int
    ) -> tuple[tuple[int, ...], np.dtype[Any]]:
        version = npy.read_magic(member)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(member)
        if dtype.hasobject:
            raise FormatError(
                f"{self._path}: array {name!r} contains Python objects, which only pickle can read;"
                " pickles can run code and are never opened.\n"
                "  Store text as array.astype(str) and numbers as a numeric array."
            )
        where = f"{self._path}, array {name!r}"
        rows, rest = (shape[0], prod(shape[1:])) if shape else (1, 1)
        self._limits.check_shape(where, rows, rest, dtype.itemsize)
        # NumPy allocates the whole array before it finds that bytes are missing.
        if rows * rest * dtype.itemsize > n_bytes:
            raise FormatError(f"{where}: shape {shape} in {n_bytes} bytes; the file is damaged.")
        return shape, dtype

    def load(self, name: str) -> NDArray[Any]:
        shape, dtype = self.headers[name]
        with self._archive.open(f"{name}.npy") as member:
            array: NDArray[Any] = npy.read_array(member, allow_pickle=False)
        if array.shape != shape or array.dtype != dtype:
            raise FormatError(
                f"{self._path}: array {name!r} changed while it was read; read it again."
            )
        return array


@contextmanager
def _archive(path: Path, limits: Limits) -> Iterator[_Members]:
    with open_regular(path, limits) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                yield _Members(path, archive, limits)
        except (RatoonError, MemoryError):
            raise
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError) as error:
            raise FormatError(
                f"{path}: not a complete .npz archive ({error}).\n"
                "  It may be cut off; copy or download it again."
            ) from None
        except Exception as error:  # NumPy raises whatever a damaged header leads to
            raise FormatError(
                f"{path}: a damaged array in the archive ({error}); copy or download it again."
            ) from None


def _sparse(path: Path, members: _Members, limits: Limits) -> Any:
    kind = members.load("format").item()
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    if kind not in ("csr", "csc"):
        raise FormatError(
            f"{path}: sparse format {kind!r} is not supported; save the matrix as CSR."
        )
    shape = members.load("shape").reshape(-1)
    if shape.size != 2 or shape.dtype.kind not in "iu" or shape.min() < 0:
        raise FormatError(f"{path}: {shape!r} is not the shape of a matrix; the file is damaged.")
    n_rows, n_columns = (int(n) for n in shape)
    limits.check_shape(str(path), n_rows, n_columns)
    data, indices, indptr = (members.load(name) for name in ("data", "indices", "indptr"))
    if data.ndim != 1:
        raise FormatError(
            f"{path}: the stored values must be one-dimensional; the file is damaged."
        )
    major, minor = (n_rows, n_columns) if kind == "csr" else (n_columns, n_rows)
    check_compressed(indptr, indices, data.size, major, minor, source=str(path))
    build = sp.csr_matrix if kind == "csr" else sp.csc_matrix
    return build((data, indices, indptr), shape=(n_rows, n_columns))
