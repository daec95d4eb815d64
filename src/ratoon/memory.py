"""The memory there is, compared with what is needed before anything is allocated.

The limits are those of the control group (version 1 and 2), of the address space (``ulimit -v``)
and of the machine.  The environment variable ``RATOON_MEMORY_LIMIT`` overrides them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from ratoon.errors import InvalidParameterError, NotEnoughMemoryError

VARIABLE = "RATOON_MEMORY_LIMIT"

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_SMALL = 64 * 2**20  # so little is not worth a look at the system
_CGROUPS = Path("/sys/fs/cgroup")
_PROC = Path("/proc")


def require_memory(n_bytes: int, what: str, advice: str) -> None:
    """Raise if something needs more memory than there is.

    Parameters
    ----------
    n_bytes : int
        Memory that is needed.
    what : str
        What needs it, as the beginning of the message.
    advice : str
        The parameters to change.

    Raises
    ------
    NotEnoughMemoryError
        With both figures.
    """
    limit = given_limit()
    if limit is None and not os.environ.get(VARIABLE) and n_bytes > _SMALL:
        found = min(available(), default=None)
        if found is None or n_bytes <= found[0]:
            return
        limit, source = found
    else:
        source = VARIABLE
    if limit is not None and n_bytes > limit:
        raise NotEnoughMemoryError(
            f"{what} needs about {gigabytes(n_bytes)} of memory, but {gigabytes(limit)} are"
            f" available ({source}).\n  {advice}\n"
            f"  If the available memory is measured wrongly, set {VARIABLE} to bytes, to a size"
            f' such as "8GB", or to "none".'
        )


def gigabytes(n_bytes: int) -> str:
    """Return a size for a message.

    Examples
    --------
    >>> gigabytes(4_500_000), gigabytes(36_000_000_000)
    ('4.5 MB', '36 GB')
    """
    return f"{n_bytes / 1e6:,.3g} MB" if n_bytes < 1e9 else f"{n_bytes / 1e9:,.3g} GB"


def given_limit() -> int | None:
    """Return the limit in the environment; None if it is not set or is ``none``."""
    text = os.environ.get(VARIABLE, "").strip()
    return None if text.lower() in ("", "none") else size_in_bytes(text)


def size_in_bytes(text: str) -> int:
    """Return the number of bytes in a text such as ``8GB``.

    Examples
    --------
    >>> size_in_bytes("1000"), size_in_bytes("8GB"), size_in_bytes("1.5 GiB")
    (1000, 8000000000, 1610612736)
    """
    found = re.fullmatch(r"([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([KMGT]?I?)B?", text.strip().upper())
    factor = None if found is None else {**_UNITS, **_BINARY}.get(found[2])
    if found is None or factor is None:
        raise InvalidParameterError(
            f'{VARIABLE} must be a number of bytes, a size such as "8GB" or "none", got {text!r}.'
        )
    return int(float(found[1]) * factor) if "." in found[1] else int(found[1]) * factor


def available() -> Iterator[tuple[int, str]]:
    """Yield the bytes that this process may still allocate, for every limit, and its name."""
    for measure in (_of_machine, _of_address_space, _of_groups):
        try:
            yield from measure()
        except (OSError, ValueError, IndexError, KeyError):
            continue  # not this system


def _of_machine() -> Iterator[tuple[int, str]]:
    try:
        lines = (_PROC / "meminfo").read_text().splitlines()
    except OSError:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        yield total, "the memory of this machine"
        return
    kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines if ":" in line}
    free = kilobytes["MemAvailable"] + kilobytes.get("SwapFree", 0)
    yield free * 1024, "free memory and swap space of this machine"


def _of_address_space() -> Iterator[tuple[int, str]]:
    try:
        import resource
    except ImportError:  # Windows
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        try:
            used = int((_PROC / "self/statm").read_text().split()[0]) * resource.getpagesize()
        except OSError:
            used = 0
        yield max(limit - used, 0), "limit of the address space"


def _of_groups() -> Iterator[tuple[int, str]]:
    for line in (_PROC / "self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            top, names = _CGROUPS, ("memory.max", "memory.current", "")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
            top = _CGROUPS / "memory"
        else:
            continue
        # The limits of all groups above hold, too.
        inner = PurePosixPath(path.lstrip("/"))
        for group in (inner, *inner.parents):
            yield from _of_group(top / group, *names)


def _of_group(folder: Path, limit: str, usage: str, prefix: str) -> Iterator[tuple[int, str]]:
    try:
        most = (folder / limit).read_text().strip()
        if most == "max" or int(most) >= 2**60:
            return
        used = int((folder / usage).read_text())
        lines = (folder / "memory.stat").read_text().splitlines()
    except (OSError, ValueError):
        return
    numbers = dict(line.split(maxsplit=1) for line in lines)
    # The kernel gives up cached files first.
    cached = sum(int(numbers.get(f"{prefix}{kind}_file", 0)) for kind in ("inactive", "active"))
    yield max(int(most) - max(used - cached, 0), 0), "limit of the control group"
