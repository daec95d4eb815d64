"""Read untrusted HDF5 files.

An HDF5 file can refer to other files: external storage reads any file of the computer, external
links and virtual data sets open other HDF5 files, soft links lead anywhere in the same file.  It
can also declare terabytes in a kilobyte, and name filters that load compiled plug-ins.  Every data
set and group is opened through the functions here, which refuse all of this before they read data.

They cannot make the HDF5 library itself safe against damaged files; the isolated mode of `read`
does that.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.datasets.files import Limits
from ratoon.datasets.optional import require
from ratoon.errors import FormatError, RatoonError

_FILTERS = {1: "deflate", 2: "shuffle", 3: "fletcher32", 4: "szip", 5: "nbit", 6: "scaleoffset"}
_LZF = 32000  # compiled into h5py itself
_DEPTH = 8


@contextmanager
def open_hdf5(path: Path) -> Iterator[Any]:
    """Open a file for reading; errors of the HDF5 library are raised as `FormatError`."""
    h5py = require("h5py", f"to read {path.name}")
    try:
        with h5py.File(path, "r") as file:
            yield file
    except RatoonError:
        raise
    except (
        OSError,
        KeyError,
        ValueError,
        TypeError,
        RuntimeError,
        UnicodeError,
        AttributeError,
        IndexError,
        NotImplementedError,
        OverflowError,
        MemoryError,
    ) as error:
        raise FormatError(
            f"{path}: damaged, cut off or not an HDF5 file ({_one_line(error)}).\n"
            "  Copy or download it again."
        ) from None


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]


def child(group: Any, name: str, path: Path) -> Any:
    """Return a direct member of a group; links and paths are refused."""
    import h5py

    where = f"{path}: {group.name.rstrip('/')}/{name}"
    if "/" in name or name in (".", ".."):
        raise FormatError(
            f"{where}: a name inside the file may not be a path; the file is damaged or malicious."
        )
    link = group.get(name, getlink=True)
    if link is None:
        raise FormatError(f"{where} is missing in the file.")
    if not isinstance(link, h5py.HardLink):
        raise FormatError(
            f"{where} is a link ({type(link).__name__}) and is not followed.\n"
            "  Store the data themselves under this name."
        )
    if group.name.count("/") > _DEPTH:
        raise FormatError(
            f"{where}: nested more than {_DEPTH} levels deep; the file is damaged or malicious."
        )
    return group[name]


def members(group: Any, path: Path) -> dict[str, Any]:
    """Return the direct members of a group; links are refused."""
    names = list(group)
    if len(names) > 100_000:
        raise FormatError(f"{path}: {group.name} has {len(names)} members, the limit is 100000.")
    return {name: child(group, name, path) for name in names}


def is_dataset(item: Any) -> bool:
    """Whether a member is an array rather than a group."""
    import h5py

    return isinstance(item, h5py.Dataset)


def check_storage(dataset: Any, path: Path) -> None:
    """Raise unless the values of a data set are in this file and its filters are built in."""
    where = f"{path}: {dataset.name}"
    if not is_dataset(dataset):
        raise FormatError(f"{where} is a group, expected an array.")
    properties = dataset.id.get_create_plist()
    if properties.get_external_count():
        raise FormatError(
            f"{where} has its values in another file, which could be any file of this computer;"
            " this is refused. Store the values in this file."
        )
    if dataset.is_virtual:
        raise FormatError(
            f"{where} is assembled from other files, which is refused; store the"
            " values in this file."
        )
    for place in range(properties.get_nfilters()):
        code = properties.get_filter(place)[0]
        if code not in _FILTERS and code != _LZF:
            raise FormatError(
                f"{where} is compressed with filter {code}, which needs a plug-in; this is"
                " refused.\n  Write it again with gzip compression."
            )


def load(dataset: Any, path: Path, limits: Limits) -> NDArray[Any]:
    """Return a complete data set, after its storage and its size have been checked."""
    check_storage(dataset, path)
    where = f"{path}: {dataset.name}"
    shape = dataset.shape
    if shape is None:
        return np.empty(0)
    rows, rest = (shape[0], prod(shape[1:])) if shape else (1, 1)
    limits.check_shape(where, rows, rest, max(1, dataset.dtype.itemsize))
    stored = int(dataset.id.get_storage_size())
    n_bytes = prod(shape) * dataset.dtype.itemsize
    # Chunks that were never written are read as zeros and take no space in the file.
    limits.check_expanded(where, n_bytes, stored)
    values = dataset.asstr(errors="replace")[()] if _is_text(dataset) else dataset[()]
    return np.asarray(values)


def _is_text(dataset: Any) -> bool:
    import h5py

    return h5py.check_string_dtype(dataset.dtype) is not None


def texts(dataset: Any, path: Path, limits: Limits) -> list[str]:
    """Return a data set as a list of strings."""
    return [str(value) for value in load(dataset, path, limits).reshape(-1).tolist()]
