"""Threads, forks, signals and shortage of memory."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon import _native, kernels
from ratoon.kernels import NativeNetwork, Rule, Step, as_samples, available_isas
from ratoon.topology import Topology
from tests.storage.cases import IS_SANITIZED

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


# ----------------------------------------------------------------------------------- processes


def in_fork(work):
    """Run in a forked child; true if it returned true within 8 seconds."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if work() else 2
        finally:
            os._exit(code)
    for _ in range(800):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


@needs_fork
@forks
def test_a_forked_child_trains_with_threads_of_its_own():
    expected = trained(n_threads=2)
    assert _native.pool_size() >= 1, "the parent has used its threads"

    def child():
        same = _native.pool_size() == 0 and trained(n_threads=2) == expected
        return same and _native.pool_size() >= 1

    assert in_fork(child)
    assert in_fork(lambda: in_fork(child)), "and so does its own child"
    assert trained(n_threads=2) == expected, "and the parent goes on"


@needs_fork
@forks
def test_a_child_forked_while_others_train_is_not_held_up():
    expected = trained(n_threads=2)
    stop = threading.Event()

    def keep_training():
        job = Job(n_threads=2, seed=5)
        while not stop.is_set():
            job.train()

    others = [threading.Thread(target=keep_training) for _ in range(2)]
    for other in others:
        other.start()
    try:
        assert all(in_fork(lambda: trained(n_threads=2) == expected) for _ in range(5))
    finally:
        stop.set()
        for other in others:
            other.join()


def test_a_spawned_process_gives_the_same_bytes():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(trained, (2,)) == trained(n_threads=1)


# ------------------------------------------------------------------------------------- threads


def run_in_threads(works):
    """Run all at once; return their results in order, or raise what the first raised."""
    results = [None] * len(works)
    start = threading.Barrier(len(works))

    def run(k):
        start.wait()
        try:
            results[k] = works[k]()
        except BaseException as error:
            results[k] = error

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def test_networks_trained_at_the_same_time_give_the_bytes_they_give_alone():
    alone = [trained(n_threads=1, seed=seed) for seed in range(4)]
    works = [lambda seed=seed: trained(n_threads=2, seed=seed) for seed in range(4)]
    assert run_in_threads(works) == alone


def test_topologies_drawn_at_the_same_time_are_those_drawn_alone():
    def draw(seed, n_threads):
        topology = Topology.random((3000, 2000), 200_000, seed=seed, n_threads=n_threads)
        weights = kernels.normal(200_000, 1.0, np.float32, seed=seed, n_threads=n_threads)
        after, _ = kernels.rewire_by_sign(
            topology, weights, [], 0.3, seed=seed, n_threads=n_threads
        )
        return after.content_hash()

    alone = [draw(seed, 1) for seed in range(4)]
    assert run_in_threads([lambda seed=seed: draw(seed, 3) for seed in range(4)]) == alone


def test_a_network_at_work_refuses_a_second_call():
    job = Job(n_threads=1)
    samples = as_samples(job.x, np.float32)
    refused = []

    def meddle(done):
        for call in (
            lambda: job.network.predict(samples),
            lambda: job.train(),
            lambda: job.network.signals(samples, job.y, np.arange(3)),
            lambda: job.network.add_layer(
                Topology.full((3, 1)), np.ones(3, np.float32), np.ones(1, np.float32)
            ),
        ):
            with pytest.raises(RuntimeError, match="at work already"):
                call()
            refused.append(done)

    while not refused:  # progress is told every 20 ms, so a short training may pass without
        job.train(epochs=20, progress=meddle)
    assert job.network.predict(samples).shape == (24, 3), "and is free again afterwards"


# ------------------------------------------------------------------------- errors and interrupts


class Raised(Exception):
    pass


def endless(job, progress=None):
    """Train for much longer than any test may take."""
    return job.train(epochs=50_000, progress=progress)


def test_what_a_progress_function_raises_ends_training_and_leaves_the_network_usable():
    job = Job(n_threads=2)
    told = []

    def progress(done):
        told.append(done)
        if len(told) == 3:
            raise Raised

    with pytest.raises(Raised):
        endless(job, progress)

    assert told == sorted(set(told)), "steps are counted upwards"
    assert all(np.isfinite(array).all() for array in job.arrays)
    assert job.train().steps_done == 6
    assert np.isfinite(job.network.predict(as_samples(job.x, np.float32))).all()


def test_an_interrupted_training_has_made_whole_steps():
    job, again = Job(n_threads=2), Job(n_threads=1)
    told = []

    def progress(done):
        told.append(done)
        raise Raised

    with pytest.raises(Raised):
        endless(job, progress)
    order = np.tile(np.arange(24), 1 + told[0] // 3)[: 8 * told[0]]
    again.network.train(
        as_samples(again.x, np.float32),
        again.y,
        order,
        8,
        Rule.MOMENTUM,
        [Step(lr=0.01, mu=0.9)] * told[0],
    )
    assert again.result() == job.result()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no such timers here")
@pytest.mark.parametrize("what", ["train", "predict"])
def test_a_signal_handler_runs_during_native_work_and_may_end_it(what):
    job = Job(n_threads=2)
    many = as_samples(np.broadcast_to(job.x[:1], (10_000_000, 2000)), np.float32)

    def raise_it(signum, frame):
        raise Raised

    previous = signal.signal(signal.SIGALRM, raise_it)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(Raised):
            endless(job) if what == "train" else job.network.predict(many)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert job.train().steps_done == 6


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send here")
def test_ctrl_c_ends_a_long_training():
    script = """
        import numpy as np
        from tests.kernels.test_processes import Job, endless

        job = Job(n_threads=2)
        try:
            endless(job, progress=lambda done: print("training", flush=True))
        except KeyboardInterrupt:
            print("interrupted", job.train().steps_done)
    """
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((root, os.environ.get("PYTHONPATH", "")))},
    ) as process:
        assert process.stdout.readline() == "training\n"
        process.send_signal(signal.SIGINT)
        *_, last = process.stdout
    assert last == "interrupted 6\n"
    assert process.returncode == 0


# ------------------------------------------------------------------------------ shortage of memory


needs_limits = pytest.mark.skipif(
    sys.platform != "linux" or IS_SANITIZED,
    reason="limits on memory are not kept elsewhere, and a sanitizer needs terabytes of addresses",
)


def with_room(megabytes, work):
    """Return what ``work`` returns with little more memory than is in use, or None if too little.

    At times there is not even enough for the stacks of threads.
    """
    import resource

    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (megabytes << 20), before[1]))
    try:
        return work()
    except MemoryError:
        return None
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


@needs_fork
@forks
@needs_limits
def test_too_little_memory_is_an_error_or_slower_work_and_never_the_end_of_the_process():
    expected = trained(n_threads=7)

    def child(megabytes):
        result = with_room(megabytes, lambda: trained(n_threads=7))
        return result in (None, expected) and trained(n_threads=7) == expected

    assert all(in_fork(lambda room=room: child(room)) for room in (0, 1, 2, 3, 5, 8, 12, 20, 60))
    assert in_fork(lambda: with_room(2000, lambda: trained(n_threads=7)) == expected), (
        "given enough, it works"
    )


@needs_fork
@forks
@needs_limits
@pytest.mark.parametrize("batch", [None, 8, 40])
def test_a_network_that_ran_out_of_memory_works_when_there_is_enough(batch):
    # Activations take megabytes, the 1000 connections of a layer next to nothing.
    topologies = [
        Topology.random(shape, 1000, seed=0)
        for shape in ((20, 200_000), (200_000, 100_000), (100_000, 3))
    ]
    x, y = np.ones((40, 20), np.float32), np.zeros((40, 3), np.float32)

    def child(megabytes):
        network = NativeNetwork(np.float32, "squared_error", 1)
        for topology in topologies:
            weights, bias = np.ones(1000, np.float32), np.zeros(topology.shape[1], np.float32)
            network.add_layer(topology, weights, bias)
        samples = as_samples(x, np.float32)

        def work():
            if batch is None:
                return network.predict(samples)
            steps = [Step(lr=0.0)] * (40 // batch)
            return network.train(samples, y, np.arange(40), batch, Rule.SGD, steps)

        with_room(megabytes, work)
        return work() is not None

    assert all(in_fork(lambda room=room: child(room)) for room in (1, 5, 10, 20, 30, 40, 60))


def test_more_threads_than_tasks_are_not_started():
    before = _native.pool_size()
    expected = kernels.normal(300_000, 1.0, np.float32, seed=0)
    many = kernels.normal(300_000, 1.0, np.float32, seed=0, n_threads=1_000_000)
    assert_array_equal(many, expected)
    assert _native.pool_size() <= max(before, 5), "65,536 numbers are one task"


@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer ends the process where `new` would throw")
@pytest.mark.parametrize("n_connections", [10**14, 17 * 10**13])
def test_more_connections_than_memory_holds_are_a_memory_error(n_connections):
    # More than the 128 TB a process can address; of the second, those left out are drawn.
    with pytest.raises(MemoryError):
        Topology.random((2**31 - 1, 100_000), n_connections, seed=0)


# ------------------------------------------------------------------------------- instruction sets


def test_an_instruction_set_is_used_within_its_block_only():
    before = kernels.current_isa()
    for name in available_isas():
        with kernels.use_isa(name):
            assert kernels.current_isa() == name
        assert kernels.current_isa() == before
    with pytest.raises(ValueError, match="available"), kernels.use_isa("mmx"):
        pass
    assert kernels.current_isa() == before
    assert available_isas()[-1] == "baseline"


@pytest.mark.parametrize("wish", ["baseline", "mmx"])
def test_the_environment_names_the_instruction_set(wish):
    script = "from ratoon.kernels import current_isa; print(current_isa())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "RATOON_ISA": wish},
        check=False,
    )
    if wish == "mmx":
        assert "'mmx' is not available here; available: " in done.stderr
        assert done.returncode == 1
    else:
        assert done.stdout == "baseline\n"


def test_instruction_sets_agree_but_for_rounding():
    outputs = []
    for name in available_isas():
        with kernels.use_isa(name):
            job = Job(n_threads=1)
            job.train()
            outputs.append(job.network.predict(as_samples(job.x, np.float32)))
    for output in outputs[1:]:
        # Six steps in float32, each rounding to 6e-8 of values near 1 a few hundred times.
        assert np.abs(output - outputs[0]).max() < 1e-3
    assert_array_equal([len(output) for output in outputs], 24)
