"""Memory between epochs: what a minibatch works in is not asked of the system anew."""

import sys

import pytest

from tests.processes import IS_SANITIZED, run_python

# Every epoch makes its network anew, as a training that rewires does.  After a few the system has
# given all there is to give.
FAULTS = """
import resource
import numpy as np
from ratoon.kernels import Rule, Step, as_samples
from ratoon.network import SparseMLP

network = SparseMLP.start((20_000, 16_000, 16_000, 2), epsilon=10, seed=0)
for layer in network.layers:
    layer.clear_state(1)
x = np.zeros((8, 20_000), dtype=np.float32)
targets = np.zeros((8, 2), dtype=np.float32)
order = np.arange(8, dtype=np.int64)
for _ in range(8):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    native = network.native("squared_error", 2)
    native.train(as_samples(x, np.float32), targets, order, 4, Rule.MOMENTUM, [Step(lr=0.0)] * 2)
    del native
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts page faults as Linux does")
@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer has an allocator of its own")
def test_epochs_reuse_their_working_memory():
    found = run_python(FAULTS)
    assert found.returncode == 0, found.stderr
    faults = [int(line) for line in found.stdout.split()]
    assert faults[0] > 800, "3.3 MB of working space, and what else a first time takes"
    assert max(faults[3:]) < 100
