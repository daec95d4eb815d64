"""How many threads to use: the one place that decides."""

from __future__ import annotations

import os
from typing import Any

import joblib

from ratoon.errors import InvalidParameterError

SMALL_WORK = 2_000_000
"""Connections times samples of a minibatch below which a second thread costs more than it gives."""

MOST_THREADS = 16
"""More bring little: the kernels are limited by memory long before."""


def available_cores() -> int:
    """Return how many cores this process may use.

    Looks at the affinity, at the quota of the container, at ``LOKY_MAX_CPU_COUNT``, and at
    ``OMP_NUM_THREADS``, by which joblib tells its workers how many threads are theirs.

    Examples
    --------
    >>> available_cores() >= 1
    True
    """
    cores = int(joblib.cpu_count())
    told = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if told.isdecimal() and int(told) > 0:
        cores = min(cores, int(told))
    return max(cores, 1)


def threads_for(n_jobs: Any, work: int) -> int:
    """Return the number of threads for ``work`` = connections x samples of a minibatch.

    Parameters
    ----------
    n_jobs : int or None
        None leaves it to us: one thread for small work, otherwise all cores there are, at most
        `MOST_THREADS`.  Positive numbers are taken as they are; -1 means all cores, -2 all but
        one, and so on.
    work : int
        How much there is to share.  The results are the same to the bit in any case.

    Examples
    --------
    >>> threads_for(None, 1000), threads_for(3, 1000)
    (1, 3)
    """
    if n_jobs is None:
        return 1 if work < SMALL_WORK else min(available_cores(), MOST_THREADS)
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__") or int(n_jobs) == 0:
        raise InvalidParameterError(
            f"`n_jobs` must be None, a positive number of threads, or negative to count from the"
            f" number of cores (-1: all), got {n_jobs!r}."
        )
    wanted = int(n_jobs)
    return wanted if wanted > 0 else max(1, available_cores() + 1 + wanted)
