"""Fan out: many fits at the same time, through joblib, on samples that nobody copies.

Whatever backend joblib has been given does the work: processes of this machine (loky), a Dask
cluster, threads.  Samples travel as the name of a file that every worker maps into its memory, so
that all workers of a machine read the same pages.
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
"""Where joblib puts what it shares; what we share is put there as well."""


@dataclass(frozen=True)
class SharedArray:
    """An array in a file, which is opened where it is needed."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    offset: int

    def open(self) -> Array:
        """Return the array as a memory map that cannot be written to."""
        try:
            return np.memmap(self.path, self.dtype, "r", self.offset, self.shape)
        except FileNotFoundError:
            raise InvalidInputError(
                f"a worker does not see the samples, which are in {self.path}.\n"
                f"  Set {FOLDER_VARIABLE} to a folder that all machines share."
            ) from None


@contextmanager
def shared(x: Array) -> Iterator[SharedArray]:
    """Keep an array in a file for the length of the block; a memory map has one already.

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
    # Where files cannot be removed while a worker holds them, the system does it later.
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
    """Yield ``function(x, *task)`` for every task, in their order, as soon as each is done.

    Parameters
    ----------
    function : callable
        One that workers can import or unpickle.
    x : ndarray
        Samples: the same for all tasks.  Workers in other processes get them as a memory map.
    tasks : iterable of tuple
        The other arguments.
    n_jobs : int, optional
        Tasks at the same time; None leaves it to `joblib.parallel_config`, without which it is
        one after the other.  What comes out does not depend on it.

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
