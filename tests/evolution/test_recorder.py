"""The topology recorder: the replay equals the training."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ratoon.evolution import SET, DeepR, NeST, RigL
from ratoon.network import SparseMLP
from ratoon.topology import Rewiring, Topology
from ratoon.training import Callback, Training, TrainingData, TrainingPlan
from ratoon.training.recorder import Change, TopologyRecorder, compressed, decompressed


class Witness(Callback):
    """Writes down everything in full."""

    needs_rewirings = True

    def __init__(self):
        self.seen = []

    def on_rewire(self, training, rewirings):
        self.seen.append((training.epochs_done, [np.sort(r.topology.positions) for r in rewirings]))


def recorded(strategy, *, n_epochs=6, parts=(6,), **options):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 20)).astype(np.float32)
    data = TrainingData.of(x, np.eye(3, dtype=np.float32)[rng.integers(3, size=30)], np.float32)
    plan = TrainingPlan(batch_size=6, n_epochs=n_epochs, evolution=strategy, learning_rate=0.05)
    recorder, witness = TopologyRecorder(**options), Witness()
    network = SparseMLP.start((20, 30, 3), density=0.2, seed=0)
    start = [np.sort(layer.topology.positions) for layer in network.layers]
    training = Training(network, data, plan, callbacks=[recorder, witness])
    for part in parts:
        training.run(part)
    return recorder, [(0, start), *witness.seen]


@pytest.mark.parametrize("strategy", [SET(), RigL(every=2), NeST(), DeepR(alpha=0.1)], ids=repr)
@pytest.mark.parametrize("parts", [(6,), (2, 4)])
def test_the_replay_equals_the_observed_topologies(strategy, parts):
    recorder, seen = recorded(strategy, parts=parts)
    replayed = list(recorder.replay())
    assert len(replayed) == len(seen) > 3
    for (epoch, layers), (true_epoch, true_layers) in zip(replayed, seen, strict=True):
        assert epoch == true_epoch
        for ours, theirs in zip(layers, true_layers, strict=True):
            assert_array_equal(ours, theirs)


def test_the_topology_of_any_epoch_can_be_read():
    recorder, seen = recorded(SET(every=2))
    assert recorder.epochs == [2, 4]
    for epoch, expected in ((0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (99, 2)):
        for topology, positions in zip(
            recorder.topologies_at(epoch), seen[expected][1], strict=True
        ):
            assert_array_equal(np.sort(topology.positions), positions)


def test_the_age_of_a_connection_counts_from_its_last_growth():
    old = Topology.from_positions((2, 4), [0, 1, 2])
    recorder = TopologyRecorder(shapes=[(2, 4)], start=[compressed(np.array([0, 1, 2]))])
    # Epoch 1: 2 goes and 5 comes.  Epoch 3: 1 and 5 go, 1 comes back at once, 7 comes.
    first = Rewiring.between(old, np.array([0, 1]), np.array([5]))
    kept = np.flatnonzero(first.topology.positions == 0)
    second = Rewiring.between(first.topology, kept, np.array([1, 7]))
    recorder.epochs = [1, 3]
    recorder.changes = [[Change.between(old, first)], [Change.between(first.topology, second)]]
    assert [a.tolist() for a in recorder.births_at(0, 0)] == [[0, 1, 2], [0, 0, 0]]
    assert [a.tolist() for a in recorder.births_at(2, 0)] == [[0, 1, 5], [0, 0, 1]]
    assert [a.tolist() for a in recorder.births_at(3, 0)] == [[0, 1, 7], [0, 3, 3]]


def test_a_recording_can_be_saved_and_loaded():
    recorder, _ = recorded(SET(), with_strength=True)
    buffer = io.BytesIO()
    np.savez(buffer, **recorder.to_arrays())
    buffer.seek(0)
    with np.load(buffer, allow_pickle=False) as arrays:
        again = TopologyRecorder.from_arrays(dict(arrays))
    assert again.epochs == recorder.epochs
    assert again.changes == recorder.changes
    assert len(again.strengths) == 6
    assert again.n_bytes == recorder.n_bytes


def test_input_strengths_are_recorded_on_request():
    recorder, _ = recorded(SET(), with_strength=True)
    assert np.stack(recorder.strengths).shape == (6, 20)
    assert recorded(SET())[0].strengths == []


@given(st.lists(st.integers(0, 2**40), unique=True, max_size=50))
def test_compression_is_lossless(values):
    positions = np.sort(np.array(values, dtype=np.int64))
    assert_array_equal(decompressed(compressed(positions)), positions)


def test_a_changed_connection_takes_at_most_two_bytes():
    topology = Topology.random((27_500, 27_500), 550_000, seed=0)
    rewiring = topology.regrow(np.arange(0, 550_000, 2), 275_000, seed=1)
    change = Change.between(topology, rewiring)
    assert len(change.removed) + len(change.grown) < 2 * 550_000
