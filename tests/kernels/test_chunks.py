import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ratoon.kernels import Rule, Step, as_samples
from ratoon.network import SparseMLP
from ratoon.samples import on_disk
from ratoon.samples.on_disk import BlockReader, DiskRows, MapReader

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 6))
TARGETS = RNG.normal(size=(50, 2))
WEIGHTS = RNG.uniform(size=50)
ORDER = RNG.permutation(50)[:46]


@pytest.fixture
def rows(monkeypatch):
    """Samples that are read nine at a time."""
    monkeypatch.setattr(on_disk, "BLOCK_BYTES", 9 * 6 * 8)
    return as_samples(DiskRows(MapReader(X)), np.float64)


def network():
    drawn = SparseMLP.start((6, 20, 2), density=0.5, seed=0, dtype=np.float64, dropout=0.3)
    for layer in drawn.layers:
        layer.clear_state(1)
    return drawn


def trained(samples, **how):
    drawn = network()
    steps = [Step(0.01 / (1 + number), mu=0.9) for number in range(12)]
    outcome = drawn.native("squared_error", 1).train(
        samples, TARGETS, ORDER, 4, Rule.MOMENTUM, steps, dropout_seed=7, first_step=3, **how
    )
    return drawn, outcome


@pytest.mark.parametrize("how", [{}, {"sample_weights": WEIGHTS, "offset": TARGETS / 2}])
def test_training_on_chunks_is_training_on_all_samples(rows, how):
    expected, all_at_once = trained(as_samples(X, np.float64), **how)
    found, in_chunks = trained(rows, **how)
    for one, other in zip(found.layers, expected.layers, strict=True):
        assert_array_equal(one.weights, other.weights)
    assert in_chunks.steps_done == all_at_once.steps_done == 12
    assert_allclose(in_chunks.loss, all_at_once.loss, rtol=1e-12)


def test_a_loss_that_is_not_finite_ends_training_at_its_step(rows):
    targets = TARGETS.copy()
    targets[ORDER[4 * 6]] = np.inf
    native = network().native("squared_error", 1)
    steps = [Step(0.01, mu=0.9)] * 12
    outcome = native.train(rows, targets, ORDER, 4, Rule.MOMENTUM, steps)
    assert (outcome.diverged, outcome.steps_done) == (True, 7)


def test_outputs_signals_and_gradients_are_those_of_samples_in_memory(rows):
    native, whole = network().native("squared_error", 1), as_samples(X, np.float64)
    assert_array_equal(native.predict(rows), native.predict(whole))
    assert_array_equal(native.predict(rows, layer=0), native.predict(whole, layer=0))
    some = ORDER[:10]
    for found, expected in zip(
        native.signals(rows, TARGETS, some), native.signals(whole, TARGETS, some), strict=True
    ):
        assert_array_equal(found[0], expected[0])
        assert_array_equal(found[1], expected[1])
    found, expected = (native.gradients(x, TARGETS, some) for x in (rows, whole))
    assert found[0] == expected[0]
    assert_array_equal(found[1][0], expected[1][0])


class Reporting:
    """Native code that reports its progress at the end of every call."""

    def __init__(self, wrapped):
        self.wrapped = wrapped

    def train(self, *arguments):
        done = self.wrapped.train(*arguments)
        arguments[-1](done[1])
        return done


def test_progress_counts_the_steps_of_earlier_chunks(rows):
    native = network().native("squared_error", 1)
    native._native = Reporting(native._native)
    counts, steps = [], [Step(0.01, mu=0.9)] * 12
    native.train(rows, TARGETS, ORDER, 4, Rule.MOMENTUM, steps, progress=counts.append)
    assert counts == [2, 4, 6, 8, 10, 12]


def test_an_epoch_takes_one_group_of_blocks_after_the_other(monkeypatch):
    monkeypatch.setattr(on_disk, "BLOCK_BYTES", 10 * 6 * 8)
    stored = as_samples(DiskRows(BlockReader(X, group=2)), np.float64)
    order = stored.shuffled(np.arange(50), np.random.default_rng(0))
    assert_array_equal(np.sort(order), np.arange(50))
    assert len(set((order[:20] // 10).tolist())) == 2
    in_memory = as_samples(X, np.float64).shuffled(np.arange(50), np.random.default_rng(0))
    assert_array_equal(in_memory, np.random.default_rng(0).permutation(50))
