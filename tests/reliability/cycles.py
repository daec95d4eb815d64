"""Train in child after child of a process that has trained with threads.

    python tests/reliability/cycles.py --cycles 100

Children are made by fork, by forkserver, by spawn and by loky, in turn.  Each trains with two
threads and must come to the bytes the parent came to.  A child that does not answer in time hangs;
the limit is far above what a busy machine needs, since a deadlock lasts for ever.  Prints JSON.
"""

import argparse
import json
import multiprocessing
import sys
import threading
import time
import warnings
from pathlib import Path

import joblib
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from ratoon import SparseMLPClassifier

KINDS = ["fork", "fork while training", "forkserver", "loky", "spawn"]
PATIENCE = 240.0
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3000)).astype(np.float32)
Y = RNG.integers(3, size=40)


def trained():
    """Train with two threads on work large enough for both, and return all weights."""
    how = {"density": 0.02, "max_iter": 2, "solver": "sgd", "dtype": "float32"}
    model = SparseMLPClassifier((1000,), random_state=0, n_jobs=2, **how).fit(X, Y)
    return b"".join(layer.weights.tobytes() for layer in model.network_.layers)


def send_trained(pipe):
    pipe.send_bytes(trained())


def in_child(kind):
    """Return what a child trained, or None if it hung or died."""
    context = multiprocessing.get_context(kind)
    receiving, sending = context.Pipe(duplex=False)
    child = context.Process(target=send_trained, args=(sending,))
    with warnings.catch_warnings():
        # From Python 3.12 on, forking with threads running warns; that it works is the claim.
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    sending.close()
    try:
        found = receiving.recv_bytes() if receiving.poll(PATIENCE) else None
    except EOFError:
        found = None
    if found is None:
        child.kill()
    child.join()
    return found


def in_loky():
    try:
        return joblib.Parallel(n_jobs=2, timeout=PATIENCE)([joblib.delayed(trained)()] * 2)[1]
    except (TimeoutError, multiprocessing.TimeoutError):
        return None


def while_training():
    """Fork while another thread of the parent is inside native code."""
    stop = threading.Event()

    def keep_training():
        while not stop.is_set():
            trained()

    other = threading.Thread(target=keep_training)
    other.start()
    try:
        return in_child("fork")
    finally:
        stop.set()
        other.join()


def one_cycle(kind):
    if kind == "loky":
        return in_loky()
    return while_training() if kind == "fork while training" else in_child(kind)


def run(*, cycles, minutes, kinds=tuple(KINDS)):
    stop = time.monotonic() + 60 * minutes
    expected = trained()
    found = {"cycles": dict.fromkeys(kinds, 0), "hung": 0, "different": 0}
    for number in range(cycles):
        kind = kinds[number % len(kinds)]
        answer = one_cycle(kind)
        found["cycles"][kind] += 1
        found["hung"] += answer is None
        found["different"] += answer is not None and answer != expected
        if trained() != expected:
            found["different"] += 1
        if time.monotonic() > stop:
            break
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--kinds", nargs="*", default=KINDS)
    given = parser.parse_args()
    result = run(cycles=given.cycles, minutes=given.minutes, kinds=tuple(given.kinds))
    print(json.dumps(result))
