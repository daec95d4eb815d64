"""Resident memory of this process, and its peak."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")


def peak_mb() -> float:
    """Return the highest resident memory so far, in MB (10^6 bytes).

    Read from the kernel's record of this very address space: `getrusage` would include the
    process that started this one.
    """
    if STATUS.exists():
        return _status_mb("VmHWM")
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / 1e6 if sys.platform == "darwin" else used * 1024 / 1e6


def resident_mb() -> float:
    """Return the resident memory now, in MB; 0 if the system does not report it."""
    return _status_mb("VmRSS") if STATUS.exists() else 0.0


def forget_peak() -> bool:
    """Start measuring the peak anew; false where the system does not allow it."""
    try:
        CLEAR.write_text("5")
    except OSError:
        return False
    return True


def _status_mb(name: str) -> float:
    for line in STATUS.read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0
