"""The number of threads to use."""

from __future__ import annotations

import os
from operator import index
from typing import Any

import joblib

from ratoon.errors import InvalidParameterError

SMALL_WORK = 2_000_000
"""Connections times samples of a minibatch below which a second thread costs more than it saves."""

LARGEST_N_JOBS = 4096
"""Largest `n_jobs`; more threads than cores only cost memory."""

MOST_THREADS = 16
"""More threads help little: the kernels are limited by memory bandwidth."""


def available_cores() -> int:
    """Return how many cores this process may use.

    The limit is the smallest of the affinity, the quota of the container, ``LOKY_MAX_CPU_COUNT``,
    and ``OMP_NUM_THREADS``, which joblib sets for its workers.

    Examples
    --------
    >>> available_cores() >= 1
    True
    """
    cores = int(joblib.cpu_count())
    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if limit.isdecimal() and int(limit) > 0:
        cores = min(cores, int(limit))
    return max(cores, 1)


def threads_for(n_jobs: Any, work: int) -> int:
    """Return the number of threads for ``work`` = connections x samples of a minibatch.

    Parameters
    ----------
    n_jobs : int or None
        None means one thread for small work, and otherwise all available cores, at most
        `MOST_THREADS`.  Positive numbers are used as given; -1 means all cores, -2 all but one,
        and so on.
    work : int
        Amount of work.  Results are the same to the bit for any number of threads.

    Examples
    --------
    >>> threads_for(None, 1000), threads_for(3, 1000)
    (1, 3)
    """
    if n_jobs is None:
        return 1 if work < SMALL_WORK else min(available_cores(), MOST_THREADS)
    try:
        wanted = 0 if isinstance(n_jobs, bool) else index(n_jobs)
    except TypeError:
        wanted = 0
    if wanted == 0:
        raise InvalidParameterError(
            f"`n_jobs` must be None, a positive number of threads, or negative to count from the"
            f" number of cores (-1: all), got {n_jobs!r}."
        )
    if wanted > LARGEST_N_JOBS:
        raise InvalidParameterError(
            f"`n_jobs` must be at most {LARGEST_N_JOBS}, got {n_jobs!r}; this process may use"
            f" {available_cores()} core(s), which is -1."
        )
    return wanted if wanted > 0 else max(1, available_cores() + 1 + wanted)
