"""GraNet: an example by hand, its curve, a dense start, and the dense reference."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon import SparseMLPClassifier
from ratoon.errors import InvalidParameterError
from ratoon.evolution import Clock, GraNet, LayerState, rewire_from, start_state
from ratoon.topology import Topology
from tests.evolution.cases import CLOCK, apply, network, random_layer
from tests.evolution.dense import assert_twins_agree, cosine

START = Clock(step=0, steps_per_epoch=10, total_steps=100)


def small(weights, x, d):
    n_in, n_out = weights.shape
    topology = Topology.from_positions((n_in, n_out), np.flatnonzero(weights))
    slots = weights.ravel()[topology.positions]
    return LayerState(topology, slots, signals=lambda: (np.array(x), np.array(d)))


def test_weights_are_pruned_over_all_layers_and_regrown_by_gradient():
    #    first layer     its gradient     second layer
    #    0.1  5.0          6   -4           0.2
    #    4.0   .           3   -2           3.0
    layers = [
        small(np.array([[0.1, 5.0], [4.0, 0.0]]), [[2.0], [1.0]], [[3.0], [-2.0]]),
        small(np.array([[0.2], [3.0]]), [[1.0], [1.0]], [[1.0]]),
    ]
    # Half way to prune_until: 0.2 + 0.8 / 8 = 0.3 of 5 connections are 2 (1.5 rounds to even).
    granet = GraNet(final=0.2, zeta=0.5, prune_until=1.0, anneal="constant")
    first, second = granet.rewire(layers, START.at(50), 0)
    # The two largest are 5.0 and 4.0, but the second layer keeps its strongest, 3.0.
    assert second.topology.positions.tolist() == [1]
    # round(0.5 * 1) = 0 of the first layer are regrown.
    assert first.topology.positions.tolist() == [1]
    # At the start nothing is pruned by the curve; round(0.5 * 3) = 2 are replaced: 0.1 and 4.0.
    first, _ = granet.rewire(layers, START, 0)
    assert sorted(first.topology.positions.tolist()) == [0, 1, 2]
    assert sorted(first.carry_weights(layers[0].weights).tolist()) == [0.0, 0.0, 5.0]


@pytest.mark.parametrize("scope", ["network", "layer"])
@pytest.mark.parametrize("density", [0.3, 1.0])
def test_the_number_of_connections_falls_to_the_final_one(scope, density):
    strategy = GraNet(final=0.25, scope=scope, every=50)
    layers = network(density=density)
    counts = [layer.topology.n_connections for layer in layers]
    state, before = start_state(strategy, layers, 0), sum(counts)
    for step in strategy.schedule.due_steps(START, 100):
        rewirings, state = rewire_from(strategy, state, layers, START.at(step), step)
        layers = apply(layers, rewirings)
        after = sum(layer.topology.n_connections for layer in layers)
        assert after <= before
        before = after
    if scope == "network":
        assert after == round(0.25 * sum(counts))
    else:
        assert [layer.topology.n_connections for layer in layers] == [
            round(0.25 * count) for count in counts
        ]


def test_every_layer_keeps_its_strongest_connection():
    layers = [random_layer((20, 30), 300), random_layer((30, 10), 200)]
    weak = LayerState(layers[1].topology, 1e-6 * layers[1].weights, signals=layers[1].signals)
    rewirings = GraNet(final=0.01, zeta=0.0).rewire([layers[0], weak], CLOCK.at(90), 0)
    assert [r.topology.n_connections for r in rewirings] == [4, 1]
    assert rewirings[1].origin.tolist() == [np.argmax(np.abs(weak.weights))]


@pytest.mark.parametrize("scope", ["network", "layer"])
def test_a_dense_network_with_masks_gets_the_same_topology(scope):
    def dense(layers, clock, memory):
        counts = memory.setdefault("counts", [layer.count for layer in layers])
        level = 0.1 + 0.9 * max(0.0, 1 - clock.progress / 0.7) ** 3
        if scope == "layer":
            for layer, count in zip(layers, counts, strict=True):
                layer.prune_weakest(layer.count - round(level * count))
        else:
            sizes = np.concatenate([np.abs(layer.weights[layer.mask]) for layer in layers])
            least = np.sort(sizes)[sizes.size - round(level * sum(counts))]
            for layer in layers:
                layer.prune(layer.mask & (np.abs(layer.weights) < least))
        for layer in layers:
            count = round(0.5 * cosine(clock.progress) * layer.count)
            layer.prune_weakest(count)
            layer.grow_largest(layer.gradient, count)

    layers = network(dtype=np.float64, density=0.5)
    assert_twins_agree(GraNet(scope=scope), layers, dense, n_rewirings=4)


def test_an_estimator_ends_with_the_final_fraction_of_its_density():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 40))
    y = x[:, 0] > 0
    for density in (0.5, 1.0):
        settings = {"density": density, "max_iter": 20, "solver": "sgd", "random_state": 0}
        model = SparseMLPClassifier((30,), evolution=GraNet(final=0.2), **settings)
        planned = model.plan(40, n_outputs=2).n_connections
        model.fit(x, y)
        assert model.history_.column("n_connections")[-1] == round(0.2 * planned)


def test_positions_regrow_in_layers_that_were_full():
    layers = network(density=1.0)
    rewirings = GraNet(zeta=0.5).rewire(layers, CLOCK, 0)
    assert all(r.n_grown > 0 for r in rewirings)
    assert_array_equal([r.topology.is_full for r in rewirings], False)


@pytest.mark.parametrize(
    "wrong",
    [
        {"zeta": -1.0},
        {"final": 0.0},
        {"final": 1.5},
        {"scope": "neuron"},
        {"prune_until": 0.0},
        {"until": 0.5, "prune_until": 0.7},
    ],
)
def test_invalid_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameterError, match=f"`{list(wrong)[-1]}`"):
        GraNet(**wrong)
