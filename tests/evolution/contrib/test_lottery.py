"""The lottery ticket experiment, on a network that fits densely."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.errors import InvalidParameterError
from ratoon.evolution import find_ticket
from ratoon.evolution.contrib.lottery import with_other_weights
from ratoon.layers import SparseLayer, make_layer
from ratoon.network import SparseMLP
from ratoon.topology import Topology
from ratoon.training import Training, TrainingData, TrainingPlan


def start():
    return SparseMLP.start((20, 15, 3), density=1.0, seed=0).layers


def train(layers):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 20)).astype(np.float32)
    y = np.eye(3, dtype=np.float32)[np.argmax(x[:, :3], axis=1)]
    network = SparseMLP(layers)
    plan = TrainingPlan(learning_rate=0.05, batch_size=10, n_epochs=5)
    Training(network, TrainingData.of(x, y, np.float32), plan).run()


def test_the_weakest_after_training_are_pruned_and_the_rest_is_reset():
    topology = Topology.full((1, 4))
    layer = SparseLayer(topology, np.array([1.0, 2.0, 3.0, 4.0]), np.zeros(4))

    def weaken_the_third(layers):
        layers[0].weights += 5.0
        layers[0].weights[layers[0].topology.positions == 2] = 0.1

    rounds = find_ticket([layer], weaken_the_third, rounds=2, zeta=0.5)
    # Alone it is also the last layer: a quarter goes, which is the third weight.
    assert_array_equal(rounds[1].ticket[0].topology.positions, [0, 1, 3])
    assert_array_equal(rounds[1].ticket[0].weights, [1.0, 2.0, 4.0])
    assert_array_equal(layer.weights, [1.0, 2.0, 3.0, 4.0])


def test_every_round_has_fewer_connections_with_their_initial_weights():
    layers = start()
    rounds = find_ticket(layers, train, rounds=4, zeta=0.3)
    counts = [[layer.n_connections for layer in each.ticket] for each in rounds]
    assert counts == [[300, 45], [210, 38], [147, 32], [103, 27]]
    dense = [layer.to_csr().toarray() for layer in layers]
    for each in rounds:
        for layer, first in zip(each.ticket, dense, strict=True):
            rows, columns = layer.topology.pairs()
            assert_array_equal(layer.weights, first[rows, columns])
    assert rounds[-1].density == pytest.approx(130 / 345)


def test_each_round_is_trained_from_its_ticket():
    rounds = find_ticket(start(), train, rounds=2)
    for each in rounds:
        again = [layer.copy() for layer in each.ticket]
        train(again)
        for ours, theirs in zip(again, each.trained, strict=True):
            assert_array_equal(ours.weights, theirs.weights)


def test_the_control_has_the_same_topology_and_other_weights():
    ticket = find_ticket(start(), train, rounds=2)[1].ticket
    control = with_other_weights(ticket, seed=5)
    for ours, theirs in zip(control, ticket, strict=True):
        assert ours.topology == theirs.topology
        assert not np.isclose(ours.weights, theirs.weights).any()


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"zeta": 1.0}, {"output_zeta": -0.1}])
def test_invalid_parameters_are_refused(wrong):
    [name] = wrong
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        find_ticket([make_layer((4, 3), density=1.0, seed=0)], train, **wrong)
