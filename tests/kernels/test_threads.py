"""Many threads at once: no byte depends on them."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon import _native, kernels
from ratoon.kernels import as_samples
from ratoon.topology import Topology
from tests.kernels.jobs import Job, trained


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


def test_a_network_in_use_refuses_a_second_call():
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

    while not refused:  # progress is reported every 20 ms, so a short training may end without
        job.train(epochs=20, progress=meddle)
    assert job.network.predict(samples).shape == (24, 3), "and is free again afterwards"


def test_more_threads_than_tasks_are_not_started():
    before = _native.pool_size()
    expected = kernels.normal(300_000, 1.0, np.float32, seed=0)
    many = kernels.normal(300_000, 1.0, np.float32, seed=0, n_threads=1_000_000)
    assert_array_equal(many, expected)
    assert _native.pool_size() <= max(before, 5), "65,536 numbers are one task"
