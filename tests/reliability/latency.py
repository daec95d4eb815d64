"""Send Ctrl-C at random times, and measure the time until KeyboardInterrupt is raised.

    python tests/reliability/latency.py --tries 200

A child is busy in native code, the parent sends SIGINT and records the time; the child records
when the exception arrives, and then checks that its objects still work.  Two times are reported:
by the clock, and the child's processor time, which other processes do not change.  Prints a JSON
object.
"""

import argparse
import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from ratoon import SparseMLPClassifier
from ratoon.network import SparseMLP
from ratoon.topology import Topology

RNG = np.random.default_rng(0)


def fits_again(model, x, y):
    """Predict, if the fit had come so far that there is something to predict with; fit anew."""
    if hasattr(model, "network_"):
        assert model.predict(x[:2]).shape == (2,)
    return model.set_params(max_iter=1).fit(x[:8], y[:8]).predict(x[:2]).shape == (2,)


def busy_training():
    """Epochs of many small steps over wide layers."""
    x = RNG.normal(size=(200, 5000)).astype(np.float32)
    how = {"epsilon": 20, "solver": "sgd", "max_iter": 10_000, "dtype": "float32"}
    how["learning_rate_init"] = 1e-6  # a larger one diverges before a fast machine is interrupted
    model = SparseMLPClassifier((5000, 5000), batch_size=4, n_jobs=1, random_state=0, **how)

    def work():
        model.fit(x, np.arange(200) % 3)

    return work, lambda: fits_again(model, x, np.arange(200) % 3)


def busy_rewiring():
    """Hardly any steps: almost all the time goes into rewiring 1.5 million connections."""
    x = RNG.normal(size=(4, 20_000)).astype(np.float32)
    how = {"epsilon": 25, "solver": "sgd", "max_iter": 10_000, "dtype": "float32"}
    model = SparseMLPClassifier((20_000,), n_jobs=1, random_state=0, **how)

    def work():
        model.fit(x, np.arange(4) % 2)

    return work, lambda: fits_again(model, x, np.arange(4) % 2)


def busy_predicting():
    """One call over far more samples than there is time for."""
    network = SparseMLP.start((4000, 4000, 3), epsilon=50, seed=0)
    x = np.broadcast_to(RNG.normal(size=4000).astype(np.float32), (3_000_000, 4000))

    def work():
        network.outputs(x)

    return work, lambda: network.outputs(x[:2]).shape == (2, 3)


def busy_drawing():
    """Topologies of two million connections, one after the other."""

    def work():
        for seed in range(10_000):
            Topology.random((100_000, 100_000), 2_000_000, seed=seed)

    return work, lambda: Topology.random((5, 5), 6, seed=0).n_connections == 6


KINDS = {
    "train": busy_training,
    "rewire": busy_rewiring,
    "predict": busy_predicting,
    "draw": busy_drawing,
}


def in_child(kind, ready, result):
    """Work until interrupted, and send the time."""
    work, still_works = KINDS[kind]()
    interrupted_at = None
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.write(ready, b"r")
        work()
    except KeyboardInterrupt:
        interrupted_at = [time.monotonic(), time.process_time()]
    assert interrupted_at is not None
    os.write(result, json.dumps([*interrupted_at, still_works()]).encode())


def processor_time(pid):
    """Return the processor time of another process, as its own `time.process_time` gives it."""
    return time.clock_gettime((~pid << 3) | 2)  # what clock_getcpuclockid(3) computes on Linux


def one_try(kind, wait):
    """Return seconds by the clock and of processor time, and whether all still works."""
    reading, ready = os.pipe()
    answer, result = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            in_child(kind, ready, result)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(ready)
    os.close(result)
    os.read(reading, 1)
    time.sleep(wait)
    sent, used = time.monotonic(), processor_time(child)
    os.kill(child, signal.SIGINT)
    with os.fdopen(answer, "rb") as file:
        sent_back = file.read()
    os.waitpid(child, 0)
    os.close(reading)
    if not sent_back:
        return None
    raised, used_then, works = json.loads(sent_back)
    return raised - sent, used_then - used, works


def run(*, tries, minutes, kinds, seed):
    rng = random.Random(seed)
    stop = time.monotonic() + 60 * minutes
    found = {kind: {"tries": 0, "failed": 0, "clock_ms": 0.0, "cpu_ms": 0.0} for kind in kinds}
    for number in range(tries):
        kind = kinds[number % len(kinds)]
        answer = one_try(kind, rng.uniform(0.05, 1.5))
        of_kind = found[kind]
        of_kind["tries"] += 1
        if answer is None or not answer[2]:
            of_kind["failed"] += 1
        else:
            of_kind["clock_ms"] = round(max(of_kind["clock_ms"], 1000 * answer[0]), 1)
            of_kind["cpu_ms"] = round(max(of_kind["cpu_ms"], 1000 * answer[1]), 1)
        if time.monotonic() > stop:
            break
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tries", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    result = run(tries=given.tries, minutes=given.minutes, kinds=given.kinds, seed=given.seed)
    print(json.dumps(result))
