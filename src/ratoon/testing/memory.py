"""The check that memory is proportional to connections: very wide layers, in a child process."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable

import numpy as np

from ratoon.evolution import Strategy
from ratoon.evolution.base import Signals
from ratoon.testing.cases import evolve, layer_state
from ratoon.topology import Topology

WIDTH = 200_000
N_CONNECTIONS = 100_000
MARGIN = 256 * 2**20
"""Bytes that two rewirings may need; one bit per position would be 5 GB."""
SECONDS = 300

_DONE, _NO_MEMORY, _FAILED = 0, 3, 4


def rewires_wide_layers_in_little_memory(strategy: Strategy) -> None:
    """Check that layers of 200,000 x 200,000 are rewired within 256 megabytes.

    It runs in a child process with a limit on its memory, and only on Linux.
    """
    if sys.platform != "linux" or _is_sanitized():
        return
    code, message = _in_child(lambda: _rewire_wide(strategy))
    if code == _DONE:
        return
    if code == _NO_MEMORY:
        raise AssertionError(
            f"rewiring layers of {WIDTH:,} x {WIDTH:,} with {N_CONNECTIONS:,} connections needs"
            f" more than {MARGIN >> 20} MB; memory must be proportional to connections and"
            f" neurons, never to inputs times outputs"
        )
    if code == -signal.SIGKILL:
        raise AssertionError(
            f"rewiring layers of {WIDTH:,} x {WIDTH:,} takes longer than {SECONDS} seconds"
        )
    raise AssertionError(
        f"rewiring layers of {WIDTH:,} x {WIDTH:,} failed (exit code {code}):\n{message}"
    )


def _is_sanitized() -> bool:
    # A sanitizer needs terabytes of address space.
    return "san.so" in os.environ.get("LD_PRELOAD", "")


def _rewire_wide(strategy: Strategy) -> None:
    import resource

    topology = Topology.random((WIDTH, WIDTH), N_CONNECTIONS, seed=0)
    allowed = topology.regrow(np.arange(N_CONNECTIONS), N_CONNECTIONS, seed=1).topology
    signals = _wide_signals()
    layers = [layer_state(topology, signals=signals, allowed=limit) for limit in (None, allowed)]
    _ = np.ones((300, 300), "f4") @ np.ones((300, 300), "f4")  # starts threads before the limit
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MARGIN, size + MARGIN))
    for step in evolve(strategy, layers, n_rewirings=2):
        counts = [rewiring.topology.n_connections for rewiring in step.rewirings]
        if not all(0 < count <= 3 * N_CONNECTIONS for count in counts):
            raise AssertionError(f"the layers have {counts} connections")


def _wide_signals() -> Callable[[], Signals]:
    # A few hundred neurons are active; then an exact search is over at once.
    rng = np.random.default_rng(0)
    x, d = (np.zeros((WIDTH, 4), "f4") for _ in range(2))
    for rows in (x, d):
        rows[rng.integers(WIDTH, size=300)] = 1 + rng.random((300, 4))
    return lambda: (x, d)


def _in_child(work: Callable[[], None]) -> tuple[int, str]:
    """Run something in a copy of this process; return its exit code and an error message.

    A copy can use strategies that a new interpreter could not import.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # The child uses one thread of its own, and no lock that another thread might hold.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = _FAILED
        try:
            os.close(reading)
            work()
            code = _DONE
        except MemoryError:
            code = _NO_MEMORY
        except BaseException:
            os.write(writing, traceback.format_exc()[-4000:].encode())
        finally:
            os._exit(code)
    os.close(writing)
    timer = threading.Timer(SECONDS, os.kill, (child, signal.SIGKILL))
    timer.start()
    try:
        with os.fdopen(reading, encoding="utf-8", errors="replace") as pipe:
            message = pipe.read()
        _, status = os.waitpid(child, 0)
    finally:
        timer.cancel()
    return os.waitstatus_to_exitcode(status), message
