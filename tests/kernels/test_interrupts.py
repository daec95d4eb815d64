"""Exceptions, signals and Ctrl-C in the middle of native work."""

import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from ratoon.kernels import Rule, Step, as_samples
from ratoon.kernels.absent import largest_absent_per_output
from ratoon.topology import Topology
from tests.kernels.jobs import Job, Raised, endless
from tests.processes import with_tests_importable


def test_an_exception_of_a_progress_function_ends_training_and_leaves_the_network_usable():
    job = Job(n_threads=2)
    reported = []

    def progress(done):
        reported.append(done)
        if len(reported) == 3:
            raise Raised

    with pytest.raises(Raised):
        endless(job, progress)

    assert reported == sorted(set(reported)), "steps are counted upwards"
    assert all(np.isfinite(array).all() for array in job.arrays)
    assert job.train().steps_done == 6
    assert np.isfinite(job.network.predict(as_samples(job.x, np.float32))).all()


def test_an_interrupted_training_ends_after_a_whole_step():
    job, again = Job(n_threads=2), Job(n_threads=1)
    reported = []

    def progress(done):
        reported.append(done)
        raise Raised

    with pytest.raises(Raised):
        endless(job, progress)
    order = np.tile(np.arange(24), 1 + reported[0] // 3)[: 8 * reported[0]]
    again.network.train(
        as_samples(again.x, np.float32),
        again.y,
        order,
        8,
        Rule.MOMENTUM,
        [Step(lr=0.01, mu=0.9)] * reported[0],
    )
    assert again.result() == job.result()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no such timers here")
@pytest.mark.parametrize("what", ["train", "predict"])
def test_a_signal_handler_runs_during_native_work_and_can_end_it(what):
    job = Job(n_threads=2)
    many = as_samples(np.broadcast_to(job.x[:1], (10_000_000, 2000)), np.float32)

    def raise_it(signum, frame):
        raise Raised

    previous = signal.signal(signal.SIGPROF, raise_it)
    signal.setitimer(signal.ITIMER_PROF, 0.2)
    try:
        with pytest.raises(Raised):
            endless(job) if what == "train" else job.network.predict(many)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)
    assert job.train().steps_done == 6


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no such timers here")
@pytest.mark.parametrize(
    ("shape", "n_connections"),
    [((3_000_000, 3_000_000), 60_000_000), ((30_000, 30_000), 60_000_000)],
    ids=["sparse", "denser"],
)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_signal_handler_runs_while_connections_are_drawn_and_can_end_it(
    shape, n_connections, n_threads
):
    def raise_it(signum, frame):
        raise Raised

    previous = signal.signal(signal.SIGPROF, raise_it)
    signal.setitimer(signal.ITIMER_PROF, 0.1)
    started = time.process_time()
    try:
        with pytest.raises(Raised):
            Topology.random(shape, n_connections, seed=0, n_threads=n_threads)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)
    assert time.process_time() - started < 1.0, "the whole draw takes seconds"
    assert Topology.random((10, 10), 5, seed=0).n_connections == 5


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no such timers here")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_signal_handler_runs_during_a_search_per_output_and_can_end_it(n_threads):
    def raise_it(signum, frame):
        raise Raised

    topology = Topology.random((40_000, 40_000), 100, seed=0)
    x = np.random.default_rng(0).normal(size=(40_000, 32)).astype(np.float32)
    counts = np.full(40_000, 100)
    previous = signal.signal(signal.SIGPROF, raise_it)
    signal.setitimer(signal.ITIMER_PROF, 0.2)
    started = time.process_time()
    try:
        with pytest.raises(Raised):
            largest_absent_per_output(topology, np.arange(100), x, x, counts, n_threads=n_threads)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)
    assert time.process_time() - started < 1.5, "the whole search takes seconds"


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send here")
def test_ctrl_c_ends_a_long_training():
    script = """
        import numpy as np
        from tests.kernels.jobs import Job, endless

        job = Job(n_threads=2)
        try:
            endless(job, progress=lambda done: print("training", flush=True))
        except KeyboardInterrupt:
            print("interrupted", job.train().steps_done)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        text=True,
        env=with_tests_importable(),
    ) as process:
        assert process.stdout.readline() == "training\n"
        process.send_signal(signal.SIGINT)
        *_, last = process.stdout
    assert last == "interrupted 6\n"
    assert process.returncode == 0
