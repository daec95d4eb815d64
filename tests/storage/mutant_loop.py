"""Load and use sealed mutants in children that may die, and count what happens.

    python tests/storage/mutant_loop.py --mutants 100000
    python tests/storage/mutant_loop.py --minutes 5 --state totals.json  # again and again

Every child tries a few hundred mutants of one kind of file under a limit on memory: what it had at
its start, three times the file, and some more.  A mutant that kills the child, is late or raises
anything but an error of ratoon is an entry under "troubles", with the seed and the number that
make it again (``--seed S --only N``); the batch continues after it.  Prints a JSON object.
"""

import argparse
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from ratoon.storage.rules import Violation
from tests.processes import IS_SANITIZED
from tests.storage.cases import from_bytes
from tests.storage.mutant_files import FILES, use_quickly, use_thoroughly
from tests.storage.mutate import mutant

BATCH = 500
SLOWEST = 1.0
ROOM, MORE_ROOM = 64 * 2**20, 512 * 2**20
THOROUGHLY = 8  # one of so many accepted mutants is trained on, saved, explained, ...
NAMES = {b"r": "refused", b"a": "accepted", b"u": "used thoroughly", b"s": "slow", b"e": "raised"}


def limit_memory(room):
    if not IS_SANITIZED:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + room, resource.RLIM_INFINITY))


def try_mutant(seed, number, raw, path):
    """Try one mutant and return what happened to it."""
    rng = np.random.default_rng([seed, number])
    changed = mutant(rng, raw)
    thoroughly = rng.integers(THOROUGHLY) == 0
    limit_memory(3 * len(raw) + ROOM)
    try:
        document = from_bytes(changed)
    except Violation:
        return b"r"
    if thoroughly:
        limit_memory(MORE_ROOM)
        return b"u" if use_thoroughly(document, changed, path) else b"r"
    return b"a" if use_quickly(document) else b"r"


def try_batch(seed, first, raw, path, out):
    """Try the mutants of one seed from the first on; write one character for each to ``out``."""
    for number in range(first, BATCH):
        started = time.process_time()  # not the clock: others may be using the machine
        try:
            outcome = try_mutant(seed, number, raw, path)
        except Exception:
            last = traceback.format_exc().strip().splitlines()
            os.write(2, f"seed {seed}, mutant {number}: {' | '.join(last[-5:])}\n".encode())
            outcome = b"e"
        if outcome != b"u" and time.process_time() - started > SLOWEST:
            outcome = b"s"
        os.write(out, outcome)


def run_child(seed, first, raw, path):
    """Return the outcomes of a batch, and how the child ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            signal.alarm(600)
            try_batch(seed, first, raw, path, writing)
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


def run_batch(seed, raw, path):
    """Return the outcomes of all mutants of a seed, and what was wrong; deaths are skipped."""
    outcomes, troubles = b"", []
    while len(outcomes) < BATCH:
        more, status = run_child(seed, len(outcomes), raw, path)
        outcomes += more
        if status:
            troubles.append(f"seed {seed}, mutant {len(outcomes)}: status {status}")
            outcomes += b"d"
    for number, outcome in enumerate(outcomes):
        if outcome in b"se":
            troubles.append(f"seed {seed}, mutant {number}: {NAMES[bytes([outcome])]}")
    return outcomes, troubles


def run(*, mutants, minutes, seed, state=None):
    names = list(FILES)
    found = {"mutants": 0, "troubles": [], "kinds": {}, "seconds": 0.0}
    if state is not None and state.exists():
        found = json.loads(state.read_text())
        seed = found["next"]
    raws = {}
    stop = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        while found["mutants"] < mutants and time.monotonic() < stop:
            name = names[seed % len(names)]
            if name not in raws:
                raws[name] = FILES[name]()
            raw = raws[name]
            before = sum(os.times()[:4])
            outcomes, troubles = run_batch(seed, raw, Path(folder) / "mutant.ratoon")
            kind = Counter(found["kinds"].get(name, {}))
            kind.update(NAMES.get(bytes([outcome]), "died") for outcome in outcomes)
            seed += 1
            found["kinds"][name] = dict(kind)
            found["mutants"] += len(outcomes)
            found["troubles"] += troubles
            found["seconds"] += sum(os.times()[:4]) - before
            found["next"] = seed
            if state is not None:
                state.with_suffix(".new").write_text(json.dumps(found, indent=1))
                state.with_suffix(".new").replace(state)
    for outcome in [*NAMES.values(), "died"]:
        found[outcome] = sum(kind.get(outcome, 0) for kind in found["kinds"].values())
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mutants", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", type=Path, help="file of totals, from which a run continues")
    parser.add_argument("--only", type=int, help="try this mutant of the seed, in this process")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.only is not None:
        raw = list(FILES.values())[given.seed % len(FILES)]()
        print(try_mutant(given.seed, given.only, raw, Path(tempfile.mkdtemp()) / "mutant.ratoon"))
    else:
        how = {"mutants": given.mutants, "minutes": given.minutes, "seed": given.seed}
        print(json.dumps(run(**how, state=given.state)))
