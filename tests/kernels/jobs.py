"""Trainings large enough for threads to share, and children to run them in."""

import os
import signal
import time

import numpy as np
import pytest

from ratoon.kernels import NativeNetwork, Rule, Step, as_samples
from ratoon.topology import Topology

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
# From Python 3.12 on, forking with threads running warns; that it works is what is tested.
forks = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


class Job:
    """A network large enough that threads share its work, and samples for it."""

    def __init__(self, n_threads, seed=0):
        rng = np.random.default_rng(seed)
        shapes = [(2000, 1500), (1500, 1000), (1000, 3)]
        counts = [60_000, 50_000, 3_000]
        self.network = NativeNetwork(np.float32, "softmax_cross_entropy", n_threads)
        self.arrays = []
        for k, (shape, count) in enumerate(zip(shapes, counts, strict=True)):
            topology = Topology.random(shape, count, seed=seed + k)
            weights = rng.normal(scale=0.05, size=count).astype(np.float32)
            bias = np.zeros(shape[1], np.float32)
            state, bias_state = np.zeros_like(weights), np.zeros_like(bias)
            options = {"activation": "relu", "dropout": 0.2} if k < 2 else {}
            self.network.add_layer(
                topology, weights, bias, state=[state], bias_state=[bias_state], **options
            )
            self.arrays += [weights, bias, state, bias_state]
        self.x = rng.normal(size=(24, 2000)).astype(np.float32)
        self.y = np.eye(3, dtype=np.float32)[rng.integers(3, size=24)]

    def train(self, epochs=2, progress=None):
        order = np.tile(np.arange(24), epochs)
        steps = [Step(lr=0.01, mu=0.9)] * (3 * epochs)
        return self.network.train(
            as_samples(self.x, np.float32),
            self.y,
            order,
            8,
            Rule.MOMENTUM,
            steps,
            progress=progress,
        )

    def result(self):
        out = self.network.predict(as_samples(self.x, np.float32))
        return b"".join(array.tobytes() for array in (*self.arrays, out))


def trained(n_threads, seed=0):
    """Train anew and return every byte of the outcome."""
    job = Job(n_threads, seed)
    job.train()
    return job.result()


class Raised(Exception):
    pass


def endless(job, progress=None):
    """Train for much longer than any test may take."""
    return job.train(epochs=50_000, progress=progress)


def in_fork(work):
    """Run in a forked child; true if it returned true.

    A child that has not answered after a minute hangs: a deadlock lasts for ever, while on a busy
    machine, or under a sanitizer, honest work may take a while.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    for _ in range(6000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False
