"""Fit repeatedly in one process, and report its memory, files and threads.

    python tests/reliability/leaks.py --first 100 --last 1000

Every round fits a network with another strategy, rewires, predicts, saves, loads and trains on.
Prints a JSON object: resident megabytes after the first rounds and after the last, and how many
files and threads were open at both times.  Before it reads memory it has malloc give back what is
free: how much of that malloc keeps depends on how threads happened to take turns.
"""

import argparse
import ctypes
import gc
import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from ratoon import SparseMLPClassifier, load
from ratoon.evolution import STRATEGIES

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 200)).astype(np.float32)
Y = RNG.integers(3, size=60)


def one_round(number, folder):
    strategy = sorted(STRATEGIES)[number % len(STRATEGIES)]
    how = {"evolution": strategy, "density": 0.2, "max_iter": 2, "random_state": number}
    model = SparseMLPClassifier((150, 50), n_jobs=2, **how).fit(X, Y)
    model.save(folder / "m.ratoon")
    again = load(folder / "m.ratoon").partial_fit(X, Y)
    assert again.predict(X).shape == model.predict(X).shape


def held():
    gc.collect()
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
    if give_back is not None:
        give_back(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "megabytes": pages * os.sysconf("SC_PAGESIZE") / 2**20,
        "files": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
    }


def run(*, first, last, minutes):
    stop = time.monotonic() + 60 * minutes
    done = 0
    with tempfile.TemporaryDirectory() as folder:
        for done in range(1, last + 1):
            one_round(done, Path(folder))
            if done == first:
                before = held()
            if done > first and time.monotonic() > stop:
                break
        after = held()
    grown = {f"{name}_grown": after[name] - before[name] for name in after}
    return {"first": first, "rounds": done, **after, **grown}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=100)
    parser.add_argument("--last", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=60.0)
    given = parser.parse_args()
    print(json.dumps(run(first=given.first, last=given.last, minutes=given.minutes)))
