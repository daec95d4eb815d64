"""Layers with more connections than 32 bits can count, where there is memory for them."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.kernels import Rule, Step, linear
from ratoon.kernels.absent import slots_of
from ratoon.topology import Topology

pytestmark = pytest.mark.soak

SIDE = 46_341
"""The least whole number whose square is above 2**31."""
NEEDED = 22 * 10**9
"""17 GB for indices twice, or once beside the weights, and room for what else runs."""


def available():
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable"):
            return 1024 * int(line.split()[1])
    return 0


@pytest.mark.skipif(not Path("/proc/meminfo").exists(), reason="looks into /proc")
def test_connections_beyond_32_bits_are_read_and_trained(say):
    if available() < NEEDED:
        pytest.skip("22 GB of free memory are needed")
    topology = Topology.full((SIDE, SIDE))
    assert topology.n_connections == SIDE**2 > 2**31
    weights = np.zeros(topology.n_connections, dtype=np.float32)
    last, slots = SIDE - 1, slots_of(topology, np.array([0, SIDE**2 - 1]))
    assert slots.max() > 2**31 - 1
    weights[slots] = 2.0, 3.0
    x = np.zeros((SIDE, 1), dtype=np.float32)
    x[[0, last]] = 1.0
    expected = np.zeros((SIDE, 1), dtype=np.float32)
    expected[[0, last], 0] = 2.0, 3.0
    bias = np.zeros(SIDE, dtype=np.float32)
    assert_array_equal(linear.forward(topology, weights, bias, x, n_threads=2), expected)
    # An error at the last output alone changes the connections to it from inputs that are not 0.
    error = np.zeros((SIDE, 1), dtype=np.float32)
    error[last] = 1.0
    linear.backward(
        topology, Rule.SGD, weights, x, error, step=Step(lr=0.5), with_dx=False, n_threads=2
    )
    assert_array_equal(weights[slots], np.array([2.0, 2.5], dtype=np.float32))
    assert weights[slots_of(topology, np.array([last]))[0]] == -0.5
    assert np.count_nonzero(weights) == 3
    say(f"{topology.n_connections} connections")
