"""NeST: the budget curve, growth by gradient, new neurons, and the dense reference."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ratoon.errors import InvalidParameterError
from ratoon.evolution import Clock, LayerState, NeST, start_state
from ratoon.evolution.contrib.neurons import bridges, idle_neurons
from ratoon.topology import Topology
from tests.evolution.cases import assert_consistent, network, random_layer
from tests.evolution.dense import assert_twins_agree


def at(progress):
    return Clock(round(1000 * progress), 10, 1000)


def test_connections_follow_the_curve_up_and_down():
    strategy = NeST(peak=3.0, final=0.5)
    layers = network()
    state = start_state(strategy, layers, 0)
    for progress, level in ((0.2, 2.0), (0.4, 3.0), (0.6, 1.75), (0.8, 0.5), (0.9, 0.5)):
        rewirings, state = strategy.rewire_from(state, layers, at(progress), 0)
        for layer, rewiring, count in zip(layers, rewirings, state["seed_counts"], strict=True):
            assert_consistent(layer, rewiring)
            assert abs(rewiring.topology.n_connections - level * count) <= 0.5 + 1e-9
        layers = [
            replace(layer, topology=r.topology, weights=r.carry_weights(layer.weights),
                    state=tuple(r.carry(values) for values in layer.state))
            for layer, r in zip(layers, rewirings, strict=True)
        ]  # fmt: skip


def test_the_weight_of_a_new_connection_is_a_gradient_step():
    x, d = np.array([[3.0], [1.0]]), np.array([[2.0], [-1.0]])  # gradient [[6, -3], [2, -1]]
    layer = LayerState(
        Topology.from_pairs((2, 2), [0], [0]),
        np.array([5.0]),
        signals=lambda: (x, d),
        learning_rate=0.1,
    )
    strategy = NeST(peak=3.0)
    [rewiring], _ = strategy.rewire_from(start_state(strategy, [layer], 0), [layer], at(0.4), 0)
    weights = rewiring.topology.to_csr(rewiring.carry_weights(layer.weights)).toarray()
    assert_allclose(weights, [[5.0, 0.3], [-0.2, 0.0]])


@pytest.fixture
def seed_network():
    """Six hidden neurons, of which 4 and 5 are not connected."""
    rng = np.random.default_rng(0)
    x = np.abs(rng.normal(size=(8, 5)))
    d = rng.normal(size=(3, 5))
    hidden = np.where(np.arange(6)[:, None] < 4, np.abs(rng.normal(size=(6, 5))), 0.0)
    error = np.where(np.arange(6)[:, None] < 4, rng.normal(size=(6, 5)), 0.0)
    before = Topology.from_pairs((8, 6), np.arange(8).repeat(2), np.tile([0, 1, 2, 3], 4))
    after = Topology.from_pairs((6, 3), [0, 1, 2, 3], [0, 1, 2, 0])
    return [
        LayerState(before, rng.normal(size=16), signals=lambda: (x, error), learning_rate=0.1),
        LayerState(after, rng.normal(size=4), signals=lambda: (hidden, d), learning_rate=0.1),
    ]


def test_idle_neurons_are_those_without_any_connection(seed_network):
    assert_array_equal(idle_neurons(*(layer.topology for layer in seed_network)), [4, 5])


def test_a_new_neuron_connects_the_pairs_with_the_largest_gradient(seed_network):
    before, after = seed_network
    rng = np.random.default_rng(0)
    incoming, outgoing = bridges(before, after, np.array([4]), 2, 1.0, rng)
    gradient = before.signals()[0] @ after.signals()[1].T
    best = np.argsort(-np.abs(gradient).ravel())[:2]
    assert_array_equal(incoming.positions, np.unique(best // 3 * 6 + 4))
    assert_array_equal(outgoing.positions, np.unique(4 * 3 + best % 3))
    for growth, layer in ((incoming, before), (outgoing, after)):
        assert np.abs(growth.weights).mean() == pytest.approx(np.abs(layer.weights).mean())


def test_the_path_through_a_new_neuron_lowers_the_loss(seed_network):
    before, after = seed_network
    incoming, outgoing = bridges(before, after, np.array([4]), 1, 1.0, np.random.default_rng(1))
    gradient = before.signals()[0] @ after.signals()[1].T
    place = np.argmax(np.abs(gradient))
    assert incoming.weights[0] * outgoing.weights[0] * gradient.ravel()[place] < 0


def test_neurons_are_added_while_the_network_grows_and_not_later(seed_network):
    strategy = NeST(peak=3.0, pairs=1, neuron_growth=0.25)
    state = start_state(strategy, seed_network, 0)
    for progress, n_idle in ((0.3, 1), (0.5, 2)):
        rewirings, _ = strategy.rewire_from(state, seed_network, at(progress), 0)
        assert idle_neurons(*(each.topology for each in rewirings)).size == n_idle


def test_growth_works_without_idle_neurons():
    layers = [random_layer((20, 10), 60, seed=0), random_layer((10, 4), 10, seed=1)]
    strategy = NeST()
    rewirings, _ = strategy.rewire_from(start_state(strategy, layers, 0), layers, at(0.2), 0)
    assert [each.topology.n_connections for each in rewirings] == [120, 20]


def test_a_dense_network_with_masks_gets_the_same_topology():
    strategy = NeST(peak=2.0, final=0.5, neuron_growth=0.0)
    counts = [layer.topology.n_connections for layer in network()]

    def dense(layers, clock, memory):
        for layer, count in zip(layers, counts, strict=True):
            target = min(round(strategy.level(clock.progress) * count), layer.mask.size)
            if target > layer.count:
                layer.grow_largest(layer.gradient, target - layer.count, -0.01 * layer.gradient)
            else:
                layer.prune_weakest(layer.count - target)

    assert_twins_agree(strategy, network(dtype=np.float64), dense, n_rewirings=5)


@pytest.mark.parametrize(
    "wrong",
    [{"peak": 0.5}, {"final": 0.0}, {"grow_until": 0.9}, {"pairs": 0}, {"neuron_growth": -1.0}],
)
def test_invalid_parameters_are_refused(wrong):
    [name] = wrong
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        NeST(**wrong)


def test_a_layer_that_grows_a_lot_gets_new_tiles_and_keeps_its_weights():
    layer = random_layer((900, 20_000), 500, dtype=np.float64, learning_rate=0.1)
    strategy = NeST(peak=80.0)
    [rewiring], _ = strategy.rewire_from(start_state(strategy, [layer], 0), [layer], at(0.4), 0)
    assert rewiring.topology.n_connections == 40_000
    assert rewiring.topology == Topology.from_positions((900, 20_000), rewiring.topology.positions)
    assert rewiring.topology.tile != layer.topology.tile, "or nothing was tested"
    assert_consistent(layer, rewiring)
    weights = rewiring.carry_weights(layer.weights)
    rows, columns = rewiring.topology.pairs()
    x, d = layer.signals()
    grown = rewiring.is_grown
    gradient = np.einsum("kb,kb->k", x[rows[grown]], d[columns[grown]])
    assert_allclose(weights[grown], -0.1 * gradient)
    assert_array_equal(weights[~grown], layer.weights[rewiring.origin[~grown]])
