"""The machine and its load, which results depend on."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import time
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGES = ("ratoon", "numpy", "scipy", "numba", "torch", "scikit-learn", "sparselab")


class MachineState:
    """Facts about the machine, and how busy it was while a block ran.

    ``others_cores`` is the mean number of cores that other processes kept busy meanwhile: near 0
    on a quiet machine.  The load average also counts the benchmark itself and is slow to forget.

    >>> with MachineState() as machine:
    ...     pass
    >>> sorted(machine.facts()["load"])
    ['after', 'before', 'others_cores']
    """

    def __enter__(self) -> MachineState:
        self._load_before = os.getloadavg()
        self._busy = _busy_seconds()
        self._own = _own_seconds()
        self._started = time.perf_counter()
        self._load_after: tuple[float, ...] = self._load_before
        self._others: float | None = None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.look()

    def look(self) -> None:
        """Take note of the load up to now."""
        self._load_after = os.getloadavg()
        elapsed = time.perf_counter() - self._started
        busy = _busy_seconds()
        if busy is not None and self._busy is not None and elapsed > 0.1:
            others = busy - self._busy - (_own_seconds() - self._own)
            self._others = round(max(0.0, others) / elapsed, 2)

    def facts(self) -> dict[str, Any]:
        """Return everything needed to interpret the results."""
        return {
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "commit": _commit(),
            "cpu": _cpu_model(),
            "cores": os.cpu_count(),
            "caches": _caches(),
            "memory_gb": _memory_gb(),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "isa": _isa(),
            "versions": _versions(),
            "load": {
                "before": [round(value, 2) for value in self._load_before],
                "after": [round(value, 2) for value in self._load_after],
                "others_cores": self._others,
            },
        }


def describe(facts: dict[str, Any]) -> str:
    """Return one line that belongs under every table.

    >>> describe({"cpu": "X", "cores": 2, "isa": "avx2", "commit": "abc",
    ...           "load": {"before": [0.1], "others_cores": 0.0}})
    'X, 2 cores, avx2, commit abc; other processes kept 0.0 cores busy (load 0.1 before).'
    """
    load = facts["load"]
    text = f"{facts['cpu']}, {facts['cores']} cores, {facts['isa']}, commit {facts['commit']}"
    if load["others_cores"] is None:  # too short to measure
        return f"{text}."
    return (
        f"{text}; other processes kept {load['others_cores']} cores busy"
        f" (load {load['before'][0]} before)."
    )


def _commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(
            ["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "src", "native")
        return git("rev-parse", "--short", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def _caches() -> dict[str, str]:
    found = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = (
                (folder / name).read_text().strip() for name in ("level", "type", "size")
            )
        except OSError:
            continue
        if kind != "Instruction":
            found[f"L{level}"] = size
    return found


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (OSError, ValueError):
        return None


def _isa() -> str:
    from ratoon.kernels import current_isa

    return current_isa()


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _busy_seconds() -> float | None:
    """CPU seconds that all processes together have used since the machine started."""
    try:
        first = Path("/proc/stat").read_text().splitlines()[0].split()
    except OSError:
        return None
    user, nice, system = (int(word) for word in first[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    """CPU seconds of this process and of its children that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
