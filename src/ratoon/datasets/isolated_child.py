"""The child process of `ratoon.datasets.isolation`: one request on standard input, then the end."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path

from ratoon.datasets.isolation import answer, answer_error
from ratoon.datasets.limits import Limits
from ratoon.datasets.read import read
from ratoon.errors import FormatError, RatoonError


def main() -> None:
    """Read one file under a memory limit and leave the result in the folder of the request."""
    request = json.load(sys.stdin)
    folder = Path(request["folder"])
    with suppress(ImportError):
        import h5py  # noqa: F401 -- now, so that its own size is not charged to the file
    _limit_memory(int(request["memory_bytes"]))
    try:
        data = read(request["path"], limits=Limits(**request["limits"]), **request["arguments"])
        answer(data, folder)
    except RatoonError as error:
        answer_error(error, folder)
    except MemoryError:
        path = request["path"]
        answer_error(
            FormatError(
                f"{path}: reading needs more than {request['memory_bytes']} bytes of memory.\n"
                "  If you trust the file, pass isolated=Isolation(memory_bytes=...) with more."
            ),
            folder,
        )


def _limit_memory(n_bytes: int) -> None:
    import resource

    used = int(Path("/proc/self/statm").read_text().split()[0]) if _has_proc() else 0
    limit = used * resource.getpagesize() + n_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _has_proc() -> bool:
    return Path("/proc/self/statm").exists()


if __name__ == "__main__":
    main()
