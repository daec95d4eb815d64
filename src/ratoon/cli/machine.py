"""What the operating system tells about this program and this computer, where it does."""

from __future__ import annotations

import os
import sys


def peak_memory() -> int | None:
    """Return the most bytes this process has held, or None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def load_average() -> float | None:
    """Return how many processes wanted a core over the last minute, or None."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None
