import sys
import time
import tracemalloc

import numpy as np
import pytest

from ratoon import SparseMLPClassifier, SparseMLPRegressor
from ratoon.estimators.planning import measured_speed, workspace_bytes
from ratoon.evolution import MEST, NeST
from ratoon.kernels import block_lanes
from ratoon.network import SparseMLP
from ratoon.training import Callback
from tests.processes import IS_SANITIZED, run_python


@pytest.mark.parametrize("batch", [1, 5, 8, 33])
@pytest.mark.parametrize("widths", [(100, 50, 2), (30, 4), (5, 60, 70, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_planned_workspace_is_that_of_native_code(batch, widths, dtype, n_threads):
    network = SparseMLP.start(widths, density=0.5, seed=0, dtype=dtype)
    expected = network.native("squared_error", n_threads).workspace_bytes(batch, n_threads)
    assert workspace_bytes(widths, batch, np.dtype(dtype).itemsize, n_threads) == expected


@pytest.mark.parametrize("solver", ["sgd", "adam"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parameters_use_the_planned_memory(two_classes, solver, dtype):
    model = SparseMLPClassifier((300,), density=0.2, solver=solver, dtype=dtype, max_iter=1)
    plan = model.plan(8, n_samples=90, n_outputs=2)
    network = model.fit(*two_classes).network_
    held = sum(layer.nbytes() for layer in network.layers)
    starts = sum(layer.topology.starts.nbytes for layer in network.layers)
    assert plan.parameter_bytes == held - starts
    assert plan.connections == tuple(layer.n_connections for layer in network.layers)
    assert plan.widths == network.widths


def test_a_plan_of_a_million_neurons_allocates_little_memory():
    measured_speed.cache_clear()
    model = SparseMLPClassifier((500_000, 500_000), epsilon=10, batch_size=5, max_iter=5)
    tracemalloc.start()
    try:
        plan = model.plan(54_675, n_samples=1397, n_outputs=18)
        assert tracemalloc.get_traced_memory()[1] < 0.05 * plan.parameter_bytes
    finally:
        tracemalloc.stop()
    assert plan.n_connections > 20_000_000
    assert plan.peak_bytes < 1.2e9
    assert plan.seconds == plan.n_epochs * plan.seconds_per_epoch > 0
    text = str(plan)
    assert "54,675 -> 500,000 -> 500,000 -> 18" in text
    assert "without the data" in text
    assert repr(plan) == text


def test_keeping_the_best_network_takes_memory_too():
    plain = SparseMLPRegressor((5000, 5000), epsilon=10).plan(20)
    kept = SparseMLPRegressor((5000, 5000), epsilon=10, early_stopping=True).plan(20)
    assert kept.peak_bytes == plain.peak_bytes + plain.parameter_bytes


def test_a_plan_of_a_small_network_includes_the_memory_to_check_samples():
    small, smaller = (SparseMLPRegressor((n,), density=0.5).plan(20) for n in (50, 5))
    assert small.peak_bytes == smaller.peak_bytes > 100 * small.parameter_bytes


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer allocates additional memory")
def test_memory_stays_within_the_plan():
    code = """
import numpy as np
from ratoon import SparseMLPClassifier
def peak():
    [line] = [text for text in open("/proc/self/status") if text.startswith("VmHWM")]
    return int(line.split()[1]) * 1024
X = np.random.default_rng(0).standard_normal((20, 30_000), dtype=np.float32)
y = np.arange(20) % 2
how = dict(epsilon=10, batch_size=5, solver="sgd", learning_rate_init=1e-3, max_iter=3, n_jobs=1)
SparseMLPClassifier((8,), **how).fit(X[:, :9], y)
before = peak()
SparseMLPClassifier((30_000, 30_000), **how).fit(X, y)
print(peak() - before)
print(SparseMLPClassifier((30_000, 30_000), **how).plan(30_000, n_samples=20).peak_bytes)
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    taken, planned = map(int, done.stdout.split())
    assert 0.5 * planned < taken < 1.25 * planned


def test_a_plan_of_wide_minibatches_includes_gradients():
    block = block_lanes(50)
    one_block, two_blocks, narrow = (
        SparseMLPClassifier((50,), density=0.5, batch_size=size).plan(20, n_samples=1000)
        for size in (block, block + 1, 24)
    )
    first, last = 500, one_block.n_connections - 500
    more = two_blocks.workspace_bytes - one_block.workspace_bytes
    assert more == (first + last + 52) * 8 - first * 8, "of all layers, and not of one at a time"
    rows = 20 + 50 + 2 + 2 * 50
    links = 8 * (2 * first + last)  # the output layer is narrow
    assert narrow.workspace_bytes == rows * 24 * 8
    assert one_block.workspace_bytes == rows * block * 8 + links + first * 8


def test_a_static_network_plans_no_rewiring():
    assert SparseMLPClassifier((50,), density=0.5, evolution="static").plan(20).rewiring_bytes == 0


class ProcessorTime(Callback):
    """What an epoch took of the processor, whatever else the machine is busy with."""

    def on_fit_begin(self, training):
        self.seconds, self.before = [], time.process_time()

    def on_epoch_end(self, training, record):
        now = time.process_time()
        self.seconds.append(now - self.before)
        self.before = now


@pytest.mark.slow
def test_the_estimated_time_has_the_right_order_of_magnitude():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 8000)).astype(np.float32)
    y = rng.integers(3, size=40)
    how = {"epsilon": 10, "batch_size": 5, "learning_rate_init": 0.01, "max_iter": 4, "n_jobs": 1}
    epochs = ProcessorTime()
    model = SparseMLPClassifier((6000, 6000), callbacks=epochs, **how)
    plan = model.plan(8000, n_samples=40, n_outputs=3)
    model.fit(X, y)
    # Only the order of magnitude matters: minutes must not become hours.
    assert 0.2 < plan.seconds_per_epoch / min(epochs.seconds) < 5.0


@pytest.mark.parametrize(
    ("evolution", "peak"), [("set", 1.0), (MEST(memory="soft", zeta=0.5), 1.5), (NeST(), 3.0)]
)
def test_the_planned_memory_is_that_of_the_most_connections(evolution, peak):
    settings = {"density": 0.1, "solver": "sgd", "max_iter": 5}
    fixed = SparseMLPClassifier((400,), evolution="static", **settings).plan(300, n_outputs=2)
    other = SparseMLPClassifier((400,), evolution=evolution, **settings).plan(300, n_outputs=2)
    assert other.n_connections == fixed.n_connections
    per_connection = 4 + 8 + 8  # index, weight, momentum
    more = other.parameter_bytes - fixed.parameter_bytes
    assert more == round((peak - 1.0) * fixed.n_connections) * per_connection


def test_a_plan_of_the_closed_form_is_of_the_closed_form():
    model = SparseMLPClassifier(random_state=0)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3000)).astype(np.float32)
    y = (x[:, 0] > 0).astype(int)
    plan = model.plan(3000, n_samples=60, n_outputs=2)
    tracemalloc.start()
    try:
        model.fit(x, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    network = model.network_
    assert plan.solver == model.solver_ == "closed form"
    assert plan.widths[1] >= network.widths[1]
    for planned, layer in zip(plan.connections, network.layers, strict=True):
        assert planned >= layer.n_connections
    # Stated as within 50 %; other versions of NumPy copy more or less.
    assert 0.4 * peak <= plan.peak_bytes <= 2.5 * peak
    assert plan.seconds == plan.seconds_per_epoch > 0
    assert "closed form" in str(plan)
    assert "at most" in str(plan)
    assert "epoch" not in str(plan)
    assert SparseMLPClassifier(max_iter=3).plan(3000, n_samples=60).solver == "adam"
