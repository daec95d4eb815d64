"""Run many fits at the same time with joblib, without copying the samples.

The joblib backend does the work: processes of this machine (loky), a Dask cluster, threads.
Workers receive the name of a file and map it into memory, so that all workers of a machine share
the same pages.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from ratoon.arrays import Array
from ratoon.errors import InvalidInputError

FOLDER_VARIABLE = "JOBLIB_TEMP_FOLDER"
"""Environment variable with the folder for shared arrays of joblib, also used here."""


@dataclass(frozen=True)
class SharedArray:
    """An array in a file that workers open as a memory map."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    offset: int

    def open(self) -> Array:
        """Return the array as a read-only memory map."""
        try:
            return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)
        except FileNotFoundError:
            raise InvalidInputError(
                f"a worker cannot open the file with the samples, {self.path}.\n"
                f"  Set {FOLDER_VARIABLE} to a folder that all machines can read."
            ) from None


@contextmanager
def shared(x: Array) -> Iterator[SharedArray]:
    """Write an array to a file for the duration of the block; a memory map is used as it is.

    Examples
    --------
    >>> with shared(np.arange(6.0).reshape(2, 3)) as found:
    ...     found.open()[1].tolist()
    [3.0, 4.0, 5.0]
    """
    if isinstance(x, np.memmap) and isinstance(x.base, mmap.mmap) and x.flags.c_contiguous:
        yield SharedArray(str(x.filename), x.dtype.str, x.shape, x.offset)
        return
    folder = os.environ.get(FOLDER_VARIABLE) or tempfile.gettempdir()
    # On systems that cannot remove an open file, the temporary folder is removed later.
    with tempfile.TemporaryDirectory(
        prefix="ratoon-", dir=folder, ignore_cleanup_errors=True
    ) as made:
        path = Path(made) / "samples.bin"
        np.ascontiguousarray(x).tofile(path)
        yield SharedArray(str(path), x.dtype.str, x.shape, 0)


def fan_out(
    function: Callable[..., Any],
    x: Array,
    tasks: Iterable[tuple[Any, ...]],
    *,
    n_jobs: int | None = None,
) -> Iterator[Any]:
    """Yield ``function(x, *task)`` for every task, in order, as soon as each is done.

    Parameters
    ----------
    function : callable
        Function that workers can import or unpickle.
    x : ndarray
        Samples, the same for all tasks.  Other processes get them as a memory map.
    tasks : iterable of tuple
        The other arguments of each call.
    n_jobs : int, optional
        Tasks at the same time; None uses `joblib.parallel_config`, by default one at a time.
        Results do not depend on it.

    Examples
    --------
    >>> list(fan_out(lambda x, k: float(x.sum()) + k, np.ones(3), [(1,), (2,)]))
    [4.0, 5.0]
    """
    if joblib.effective_n_jobs(n_jobs) == 1:
        yield from (function(x, *task) for task in tasks)
        return
    with shared(x) as found:
        yield from joblib.Parallel(n_jobs=n_jobs, return_as="generator")(
            joblib.delayed(_call)(function, found, task) for task in tasks
        )


def _call(function: Callable[..., Any], x: SharedArray, task: tuple[Any, ...]) -> Any:
    return function(x.open(), *task)
