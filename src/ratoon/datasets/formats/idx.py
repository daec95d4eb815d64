"""IDX files, in which MNIST is distributed: ``train-images-idx3-ubyte`` and its labels.

A file is two zero bytes, a number type, the number of dimensions, the dimensions as big-endian
integers of 32 bits, and the values.
"""

from __future__ import annotations

import os
import re
import struct
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.datasets.files import GZIP_MAGIC, GzipStream, Limits, open_regular
from ratoon.datasets.options import Parsed, ReadOptions
from ratoon.errors import FormatError, InvalidInputError

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_MOST_DIMENSIONS = 4
_MOST_CHANNELS = 4


def is_idx(head: bytes) -> bool:
    """Whether a file begins as an IDX file.

    Examples
    --------
    >>> is_idx(bytes([0, 0, 8, 3, 0, 0, 234, 96])), is_idx(b"a,b,c")
    (True, False)
    """
    return head[:2] == b"\0\0" and len(head) >= 8 and head[2] in _TYPES and 0 < head[3] < 9


def read_idx(path: Path, options: ReadOptions) -> Parsed:
    """Read the images of an IDX file, and the labels of the file next to it."""
    values = _load(path, options.limits)
    if values.ndim == 1:
        raise FormatError(
            f"{path}: this IDX file holds {values.size} labels, not images.\n"
            "  Read the file with the images; its labels are found by name, or pass label= with"
            " their path."
        )
    if 0 in values.shape:
        raise FormatError(f"{path}: no values, the shape is {values.shape}.")
    notes, labels, source = [], None, "labels"
    file = _labels_file(path, options)
    if file is not None:
        found = _load(file, options.limits)
        if found.ndim != 1:
            raise FormatError(
                f"{file}: labels need one dimension, this IDX file has {found.ndim}; pass label="
                " with the path of the labels."
            )
        labels, source = found.tolist(), f"file {file.name!r}"
        notes.append(f"labels from file {file.name!r}")
    shape = values.shape[1:]
    is_image = len(shape) == 2 or (len(shape) == 3 and shape[-1] <= _MOST_CHANNELS)
    return Parsed(
        values.reshape(values.shape[0], -1),
        labels=labels,
        label_source=source,
        notes=notes,
        image_shape=shape if is_image else None,
    )


def _labels_file(path: Path, options: ReadOptions) -> Path | None:
    """Return the file with the labels: that of `label`, or the one with the matching name."""
    if options.label is not None:
        given = Path(str(options.label))
        for file in (given, path.parent / given):
            if file.is_file():
                return file
        raise InvalidInputError(
            f"{path}: label={options.label!r} must be the path of the IDX file with the labels, and"
            " there is no such file."
        )
    name = re.sub(r"idx\d", "idx1", path.name.replace("images", "labels"))
    if "images" not in path.name:
        return None
    stem = name.removesuffix(".gz")
    candidates = (path.with_name(name), path.with_name(stem), path.with_name(f"{stem}.gz"))
    return next((file for file in candidates if file.is_file()), None)


def _load(path: Path, limits: Limits) -> NDArray[Any]:
    """Return the array of a file; nothing is allocated for values that the file does not have."""
    with open_regular(path, limits) as file:
        magic = file.read(2)
        file.seek(0)
        if magic == GZIP_MAGIC:
            return _unpacked(path, GzipStream(file, path, limits), limits)
        dtype, shape, offset = _header(path, file.read(4 + 4 * _MOST_DIMENSIONS), limits)
        _check_size(path, os.fstat(file.fileno()).st_size - offset, dtype, shape)
        file.seek(offset)
        return np.fromfile(file, dtype=dtype, count=prod(shape)).reshape(shape)


def _unpacked(path: Path, stream: GzipStream, limits: Limits) -> NDArray[Any]:
    content = bytearray()
    most: int | None = None
    for chunk in stream.chunks():
        content += chunk
        if most is None and len(content) >= 4 + 4 * _MOST_DIMENSIONS:
            dtype, shape, offset = _header(path, bytes(content[: 4 + 4 * _MOST_DIMENSIONS]), limits)
            most = offset + prod(shape) * dtype.itemsize
        if most is not None and len(content) > most:
            break
    dtype, shape, offset = _header(path, bytes(content[: 4 + 4 * _MOST_DIMENSIONS]), limits)
    _check_size(path, len(content) - offset, dtype, shape)
    return np.frombuffer(content, dtype=dtype, offset=offset).reshape(shape)


def _header(path: Path, head: bytes, limits: Limits) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    if not is_idx(head):
        raise FormatError(f"{path}: not an IDX file; it does not begin as one.")
    n_dimensions = head[3]
    if n_dimensions > _MOST_DIMENSIONS:
        raise FormatError(
            f"{path}: {n_dimensions} dimensions; IDX files of at most {_MOST_DIMENSIONS} are read."
        )
    offset = 4 + 4 * n_dimensions
    if len(head) < offset:
        raise FormatError(f"{path}: the file ends in its header; copy or download it again.")
    shape = struct.unpack(f">{n_dimensions}I", head[4:offset])
    dtype = np.dtype(_TYPES[head[2]])
    limits.check_shape(str(path), shape[0], prod(shape[1:]), dtype.itemsize)
    return dtype, shape, offset


def _check_size(path: Path, n_bytes: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    needed = prod(shape) * dtype.itemsize
    if n_bytes != needed:
        product = " x ".join(map(str, shape))
        raise FormatError(
            f"{path}: the header declares {product} values, {needed} bytes, but the file has"
            f" {'more than that' if n_bytes > needed else n_bytes}.\n"
            "  It is cut off or damaged; copy or download it again."
        )
