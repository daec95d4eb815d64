"""Run a function in a fresh process, so that memory and threads are its own.

The function is named by ``module:function``, takes keyword arguments that JSON can carry and
returns a dictionary.  The peak of resident memory is added to what it returns.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1]
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)


def run_fresh(
    target: str, *, n_threads: int = 1, timeout_s: float = 3600.0, **arguments: Any
) -> dict[str, Any]:
    """Call the target in a process of its own; a failure comes back as ``{"failed": reason}``."""
    environment = dict(os.environ)
    environment.update(dict.fromkeys(THREAD_VARIABLES, str(n_threads)))
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(FOLDER), *filter(None, [environment.get("PYTHONPATH")])]
    )
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        command = [sys.executable, "-m", "common.isolate", target, str(answer)]
        try:
            done = subprocess.run(
                command,
                input=json.dumps(arguments),
                capture_output=True,
                text=True,
                env=environment,
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired:
            return {"failed": f"not done after {timeout_s:.0f} s"}
        if done.returncode < 0:
            return {
                "failed": f"ended by signal {-done.returncode} (9 is what a lack of memory does)"
            }
        if done.returncode > 0 or not answer.exists():
            return {"failed": (done.stderr.strip().splitlines() or ["no message"])[-1]}
        result: dict[str, Any] = json.loads(answer.read_text())
        return result


def main(target: str, answer: str) -> None:
    """Be the fresh process."""
    from common.memory import peak_mb

    module, function = target.split(":")
    arguments = json.load(sys.stdin)
    result = getattr(importlib.import_module(module), function)(**arguments)
    result.setdefault("peak_rss_mb", round(peak_mb(), 1))
    Path(answer).write_text(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
