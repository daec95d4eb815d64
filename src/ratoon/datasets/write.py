"""Write a data set to a file that `read` can read: ``.npz`` or a text table."""

from __future__ import annotations

import csv
import os
import secrets
from pathlib import Path
from typing import IO, Any

import numpy as np

from ratoon.datasets.dataset import Dataset
from ratoon.errors import InvalidParameterError

_DELIMITERS = {".csv": ",", ".tsv": "\t"}


def write(data: Dataset, path: str | os.PathLike[str]) -> Path:
    """Write a data set; the file appears under its name only when it is complete.

    Parameters
    ----------
    data : Dataset
    path : path
        ``.npz`` (exact, sparse stays sparse), ``.csv`` or ``.tsv`` (samples in rows, label last).

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from ratoon.datasets.read import read
    >>> data = Dataset(np.eye(2), np.array([0, 1]), class_names=("ill", "well"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     read(write(data, Path(folder, "small.npz"))).labels
    array(['ill', 'well'], dtype='<U4')
    """
    path = Path(path)
    if path.suffix not in (".npz", *_DELIMITERS):
        raise InvalidParameterError(
            f"{path}: write to .npz, .csv or .tsv, not {path.suffix!r}."
            " Change the ending of the name."
        )
    temporary = path.with_name(f".ratoon-{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:  # with the permissions of any new file
            if path.suffix == ".npz":
                np.savez_compressed(file, allow_pickle=False, **_arrays(data))
            else:
                _write_table(data, file, _DELIMITERS[path.suffix])
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path


def _arrays(data: Dataset) -> dict[str, Any]:
    arrays: dict[str, Any] = {"X": data.X}
    if data.is_sparse:  # under the names that scipy.sparse.save_npz uses
        arrays = {name: getattr(data.X, name) for name in ("data", "indices", "indptr")}
        arrays |= {"shape": np.array(data.X.shape), "format": np.array("csr")}
    for name in ("y", "feature_names", "sample_names", "class_names"):
        values = getattr(data, name)
        if values is not None:
            arrays[name] = np.asarray(values)
    return arrays


def _write_table(data: Dataset, binary: IO[bytes], delimiter: str) -> None:
    names = data.feature_names or tuple(f"x{j}" for j in range(data.n_features))
    heading = ["sample", *names] + (["class"] if data.y is not None else [])
    lines = csv.writer(_Encoded(binary), delimiter=delimiter, lineterminator="\n")
    lines.writerow(heading)
    labels = data.labels
    for row in range(data.n_samples):
        values = data.X[row].toarray().ravel() if data.is_sparse else data.X[row]
        name = data.sample_names[row] if data.sample_names else f"sample{row}"
        # `str` of a NumPy float is the shortest text that parses to the same float.
        cells = [name, *map(str, values)]
        lines.writerow(cells if labels is None else [*cells, labels[row]])


class _Encoded:
    """The part of a text file that `csv.writer` needs, on top of a binary file."""

    def __init__(self, binary: IO[bytes]) -> None:
        self._binary = binary

    def write(self, text: str) -> int:
        return self._binary.write(text.encode("utf-8"))
