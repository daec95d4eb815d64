"""Many threads at once: no byte depends on them."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon import _native, kernels
from ratoon.errors import AlreadyTrainingError
from ratoon.kernels import NativeNetwork, Rule, Step, as_samples
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


def test_arrays_in_training_refuse_to_be_trained_or_rewired_by_another_call():
    topology = Topology.random((300, 50), 4000, seed=0)
    weights = np.linspace(-1.0, 1.0, 2 * 4000, dtype=np.float32)
    bias = np.zeros(50, np.float32)
    x, y = np.ones((8, 300), np.float32), np.ones((8, 50), np.float32)

    def network(values):
        made = NativeNetwork(np.float32, "squared_error", 1)
        made.add_layer(topology, values, bias.copy())
        return made

    def train(network, progress=None, steps=2):
        order = np.zeros(8 * steps, dtype=np.int64)
        many = [Step(lr=1e-6)] * steps
        network.train(as_samples(x, np.float32), y, order, 8, Rule.SGD, many, progress=progress)

    outcomes = []

    def meddle(done):
        for values in (weights[:4000], weights[3999:7999]):  # the same, and one connection of it
            for call in (
                lambda values=values: train(network(values)),
                lambda values=values: kernels.rewire_by_sign(topology, values, [], 0.3, seed=0),
            ):
                with pytest.raises(AlreadyTrainingError, match="trained or rewired by another"):
                    call()
        train(network(weights[4000:]))
        outcomes.append(network(weights[:4000]).predict(as_samples(x, np.float32)))

    while not outcomes:  # progress is reported every 20 ms
        train(network(weights[:4000]), meddle, steps=5000)
    train(network(weights[:4000]))  # free again
    kernels.rewire_by_sign(topology, weights[:4000], [], 0.3, seed=0)
