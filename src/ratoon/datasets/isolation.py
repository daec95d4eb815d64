"""Read a file in a child process, so that a crash of the reader does not end this process.

The HDF5 and Parquet libraries are compiled code, and hostile files have crashed them before; the
readers of the other formats are our own, in Python.  The child process has bounded memory and time.
It reads the file, writes arrays into a temporary folder and exits; the parent checks these arrays
like any others.  This bounds crashes, memory and time.  It is not a sandbox: the child has the
user's rights.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ratoon.datasets.arrays import as_matrix, check_compressed
from ratoon.datasets.dataset import Dataset, Naming
from ratoon.datasets.files import GIB, Limits
from ratoon.errors import FormatError, InvalidInputError, InvalidParameterError, RatoonError
from ratoon.nesting import parse_json

_CHILD = "from ratoon.datasets.isolation import main; main()"
_ANSWER = "answer.json"
_PARTS = ("data", "indices", "indptr")
_ERRORS = {kind.__name__: kind for kind in (InvalidInputError, InvalidParameterError)}


@dataclass(frozen=True)
class Isolation:
    """Limits of the child process.

    Parameters
    ----------
    memory_bytes : int
        Address space it may use in addition to that of Python itself.
    seconds : float
        Time limit, after which it is stopped.
    """

    memory_bytes: int = 4 * GIB
    seconds: float = 120.0


def read_isolated(
    path: Path, arguments: Mapping[str, Any], limits: Limits, isolation: Isolation
) -> Dataset:
    """Return ``read(path, **arguments)``, computed in a child process."""
    if sys.platform == "win32":
        raise InvalidParameterError(
            "read: `isolated` needs memory limits, which Windows does not have; pass"
            " isolated=False."
        )
    with tempfile.TemporaryDirectory(prefix="ratoon-") as folder:
        request = {
            "path": os.path.abspath(path),
            "folder": folder,
            "memory_bytes": isolation.memory_bytes,
            "limits": asdict(limits),
            "arguments": {
                name: os.path.abspath(value) if name == "sample_sheet" and value else value
                for name, value in arguments.items()
            },
        }
        run_child(path, _CHILD, json.dumps(request), isolation)
        return _collect(path, Path(folder))


def run_child(path: Path, code: str, request: str, isolation: Isolation) -> bytes:
    """Run Python code in a child process and return its output; errors are about ``path``."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        # Threads would reserve address space; plug-ins would run code from outside.
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "HDF5_PLUGIN_PRELOAD": "::",
    }
    command = [sys.executable, "-P", "-c", code]
    try:
        done = subprocess.run(
            command,
            input=request.encode(),
            env=environment,
            capture_output=True,
            timeout=isolation.seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise FormatError(
            f"{path}: reading took more than {isolation.seconds:g} seconds and was stopped.\n"
            "  If you trust the file, pass isolated=Isolation(seconds=...) with more."
        ) from None
    if done.returncode < 0:
        raise FormatError(
            f"{path}: the reader crashed on this file (signal {-done.returncode}); the file is"
            " damaged or malicious, and nothing of it was used.\n  Copy or download it again."
        )
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise FormatError(f"{path}: the reader failed in its child process: {' '.join(last)[:300]}")
    return done.stdout


def _collect(path: Path, folder: Path) -> Dataset:
    try:
        answer = parse_json((folder / _ANSWER).read_text(encoding="utf-8"))
    except ValueError as error:
        raise FormatError(f"{path}: the reader returned no valid answer: {error}.") from None
    if "error" in answer:
        kind = _ERRORS.get(str(answer["error"]), FormatError)
        raise kind(str(answer["message"]).replace(os.path.abspath(path), str(path)))
    if answer["sparse"]:
        data, indices, indptr = (_load(folder / f"X_{part}.npy") for part in _PARTS)
        n_rows, n_columns = map(int, answer["shape"])
        check_compressed(indptr, indices, data.size, n_rows, n_columns, source=str(path))
        X: Any = sp.csr_matrix((data, indices, indptr), shape=(n_rows, n_columns))
    else:
        X = as_matrix(_load(folder / "X.npy"), dtype=answer["dtype"], source=str(path))
    shape = answer["image_shape"]

    def names(key: str) -> tuple[str, ...] | None:
        return None if answer[key] is None else tuple(map(str, answer[key]))

    return Dataset(
        X,
        _load(folder / "y.npy") if answer["has_y"] else None,
        feature_names=names("feature_names"),
        sample_names=names("sample_names"),
        class_names=names("class_names"),
        source=str(path),
        sha256=answer["sha256"],
        notes=(*(names("notes") or ()), "read in a child process"),
        image_shape=None if shape is None else tuple(map(int, shape)),
        groups=names("groups"),
        group_column=str(answer["group_column"]),
        naming=_naming(answer["naming"]),
    )


def _naming(stored: Any) -> Naming | None:
    if stored is None:
        return None
    return Naming(
        str(stored["duplicates"]),
        tuple((str(old), str(new)) for old, new in stored["id_map"]),
        str(stored["label"]),
        tuple(map(str, stored["columns"])),
        str(stored["time"]),
        str(stored["event"]),
        None if stored["fill"] is None else np.array(stored["fill"], dtype=stored["fill_type"]),
    )


def _plain_naming(naming: Naming | None) -> dict[str, Any] | None:
    if naming is None:
        return None
    fill = naming.fill
    found = asdict(replace(naming, fill=None))
    if fill is not None:
        found |= {"fill": fill.tolist(), "fill_type": fill.dtype.name}
    return found


def _load(file: Path) -> Any:
    return np.load(file, allow_pickle=False)


def _write_result(data: Dataset, folder: Path) -> None:
    """Write a data set for `read_isolated`; called in the child."""
    if data.is_sparse:
        for part in _PARTS:
            np.save(folder / f"X_{part}.npy", getattr(data.X, part))
    else:
        np.save(folder / "X.npy", data.X)
    if data.y is not None:
        np.save(folder / "y.npy", data.y)
    result = {
        "sparse": data.is_sparse,
        "shape": data.X.shape,
        "dtype": data.X.dtype.name,
        "has_y": data.y is not None,
        "feature_names": data.feature_names,
        "sample_names": data.sample_names,
        "class_names": data.class_names,
        "sha256": data.sha256,
        "notes": data.notes,
        "image_shape": data.image_shape,
        "groups": data.groups,
        "group_column": data.group_column,
        "naming": _plain_naming(data.naming),
    }
    (folder / _ANSWER).write_text(json.dumps(result), encoding="utf-8")


def _write_error(error: RatoonError, folder: Path) -> None:
    """Write an error for `read_isolated`; called in the child."""
    result = {"error": type(error).__name__, "message": str(error)}
    (folder / _ANSWER).write_text(json.dumps(result), encoding="utf-8")


def main() -> None:
    """Run in the child: read one file under a memory limit, write the result to the folder.

    The request is a JSON object on standard input.
    """
    from ratoon.datasets.read import read  # which imports this module

    request = json.load(sys.stdin)
    folder = Path(request["folder"])
    with suppress(ImportError):
        import h5py  # noqa: F401 -- now, so that its own size is not charged to the file
    _limit_memory(int(request["memory_bytes"]))
    try:
        data = read(request["path"], limits=Limits(**request["limits"]), **request["arguments"])
        _write_result(data, folder)
    except RatoonError as error:
        _write_error(error, folder)
    except MemoryError:
        path = request["path"]
        _write_error(
            FormatError(
                f"{path}: reading needs more than {request['memory_bytes']} bytes of memory.\n"
                "  If you trust the file, pass isolated=Isolation(memory_bytes=...) with more."
            ),
            folder,
        )


def _limit_memory(n_bytes: int) -> None:
    import resource

    used = int(Path("/proc/self/statm").read_text().split()[0]) if _has_proc() else 0
    limit = used * resource.getpagesize() + n_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _has_proc() -> bool:
    return Path("/proc/self/statm").exists()
