"""Too little memory raises an error and leaves everything usable."""

import sys

import numpy as np
import pytest

from ratoon.kernels import NativeNetwork, Rule, Step, as_samples
from ratoon.topology import Topology
from tests.kernels.jobs import forks, in_fork, needs_fork, trained
from tests.processes import IS_SANITIZED

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
def test_a_memory_shortage_raises_an_error_or_slows_down_but_does_not_end_the_process():
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


@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer ends the process where `new` would throw")
@pytest.mark.parametrize("n_connections", [10**14, 17 * 10**13])
def test_more_connections_than_memory_holds_are_a_memory_error(n_connections):
    # More than the 128 TB a process can address; of the second, those left out are drawn.
    with pytest.raises(MemoryError):
        Topology.random((2**31 - 1, 100_000), n_connections, seed=0)
