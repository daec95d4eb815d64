"""The memory-bandwidth roofline: the time of a step if only parameters had to be read and written.

A step of momentum SGD reads index and weight forward (8 bytes per connection), then index, weight
and momentum backward and writes the last two (20 bytes).  Whatever is computed, it cannot be faster
than these 28 bytes at the speed of memory, once they fit no cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from common.timing import repeat

BYTES_PER_CONNECTION = 28
STREAM_BYTES = 20  # per element of the stream below


def measure(threads: int, elements: int) -> dict[str, Any]:
    """Stream over an index, a weight and a momentum as an update does; return GB/s.

    Needs numba; without it NumPy does the same in several passes, and the figure is lower.
    """
    index = np.arange(elements, dtype=np.uint32)
    weights = np.zeros(elements, dtype=np.float32)
    velocity = np.zeros(elements, dtype=np.float32)
    try:
        stream, by = compiled_stream(), "numba"
    except ImportError:
        stream, by = numpy_stream, "numpy"
    stream(index, weights, velocity)
    timing = repeat(lambda: stream(index, weights, velocity), repeats=5, at_least_s=2.0)
    return {
        "stream_gb_s": STREAM_BYTES * elements / timing.best(threads) / 1e9,
        "by": by,
        "threads": threads,
    }


def compiled_stream() -> Any:
    """Return the stream as one loop."""
    from numba import njit, prange

    @njit(parallel=True, fastmath=True)
    def stream(index, weights, velocity):
        for k in prange(index.size):
            gradient = np.float32(np.int32(index[k]) & 7)
            velocity[k] = np.float32(0.9) * velocity[k] - np.float32(1e-3) * gradient
            weights[k] += velocity[k]

    return stream


def numpy_stream(index: Any, weights: Any, velocity: Any) -> None:
    """Do about the same in NumPy."""
    velocity *= np.float32(0.9)
    velocity -= (index & 7).astype(np.float32)
    weights += velocity


def least_seconds(connections: float, gb_per_s: float) -> float:
    """Return the roofline of one step.

    >>> round(least_seconds(1e9, 28.0), 3)
    1.0
    """
    return BYTES_PER_CONNECTION * connections / (gb_per_s * 1e9)
