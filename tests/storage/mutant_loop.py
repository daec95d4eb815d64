"""Load and use sealed mutants in children that may die, and count what happens.

    python tests/storage/mutant_loop.py --mutants 100000

Every child tries a few hundred mutants under a limit on memory: what it had at its start, three
times the file, and 64 MB.  A child that dies, is late or raises anything but `FormatError` is an
entry under "troubles", with the seed that makes the mutant again.  Prints a JSON object.
"""

import argparse
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from ratoon.storage.rules import Violation
from tests.processes import IS_SANITIZED
from tests.storage.cases import a_document, from_bytes, to_bytes
from tests.storage.mutate import mutant
from tests.storage.test_mutants import an_estimator_document, use, use_estimator

BATCH = 500
SLOWEST = 1.0
DOCUMENTS = [
    lambda: a_document(n_states=2),
    lambda: a_document(widths=(40, 700), dtype=np.float64, n_states=0),
    lambda: a_document("checkpoint", widths=(600, 30, 2)),
    an_estimator_document,
]


def try_batch(seed, out):
    """Try the mutants of one seed; write one character for each to ``out``."""
    raw = to_bytes(DOCUMENTS[seed % len(DOCUMENTS)]())
    if not IS_SANITIZED:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limit = used + 3 * len(raw) + 64 * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    rng = np.random.default_rng(seed)
    for _ in range(BATCH):
        changed = mutant(rng, raw)
        started = time.process_time()  # not the clock: others may be using the machine
        try:
            document = from_bytes(changed)
        except Violation:
            outcome = b"r"
        else:
            use(document)
            outcome = b"a"
            if "estimator" in document.config:
                outcome = b"a" if use_estimator(document) else b"r"
        if time.process_time() - started > SLOWEST:
            outcome = b"s"
        os.write(out, outcome)


def run_batch(seed):
    """Return the outcomes of one batch, and how the child ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            signal.alarm(600)
            try_batch(seed, writing)
        except BaseException as error:
            os.write(2, f"seed {seed}: {error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    os.close(writing)
    outcomes = b""
    while part := os.read(reading, 65536):
        outcomes += part
    os.close(reading)
    return outcomes, os.waitpid(child, 0)[1]


def run(*, mutants, minutes, seed):
    found = {"mutants": 0, "refused": 0, "accepted": 0, "slow": 0, "troubles": []}
    stop = time.monotonic() + 60 * minutes
    while found["mutants"] < mutants and time.monotonic() < stop:
        outcomes, status = run_batch(seed)
        found["mutants"] += len(outcomes)
        found["refused"] += outcomes.count(b"r")
        found["accepted"] += outcomes.count(b"a")
        found["slow"] += outcomes.count(b"s")
        if status:
            found["troubles"].append(f"seed {seed}, mutant {len(outcomes)}: status {status}")
        seed += 1
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mutants", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(json.dumps(run(mutants=given.mutants, minutes=given.minutes, seed=given.seed)))
