"""Neuron pruning: an example by hand, when it happens, and the dense reference."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.errors import InvalidParameterError
from ratoon.evolution import SET, Clock, LayerState, NeuronPruning, RigL, Static
from ratoon.evolution.contrib.neurons import importance
from ratoon.topology import Topology
from tests.evolution.cases import CLOCK, network
from tests.evolution.dense import assert_twins_agree

NOW = NeuronPruning(percentile=30.0, warm_up=0.0, prune_every=1)


def test_the_weakest_hidden_neuron_loses_all_its_connections():
    #    into hidden 0, 1, 2: 3 + 1, 0.5, 2      out of them: to 0 and 1, to 0, to 1
    before = Topology.from_pairs((2, 3), [0, 1, 0, 1], [0, 0, 1, 2])
    after = Topology.from_pairs((3, 2), [0, 0, 1, 2], [0, 1, 0, 1])
    weights = np.array([[3.0, 0.5, 0.0], [-1.0, 0.0, -2.0]])
    first = LayerState(before, weights[before.pairs()])
    assert_array_equal(importance(first), [4.0, 0.5, 2.0])
    second = LayerState(after, np.ones(4))
    rewirings = NOW.rewire([first, second], CLOCK, 0)
    assert_array_equal(np.sort(rewirings[0].topology.positions), [0, 3, 5])
    assert_array_equal(np.sort(rewirings[1].topology.positions), [0, 1, 5])


def test_pruned_neurons_do_not_count_towards_the_percentile():
    topology = Topology.from_pairs((1, 10), np.zeros(4, int), [0, 1, 2, 3])
    layers = [
        LayerState(topology, np.arange(1.0, 5.0)),
        LayerState(Topology.full((10, 1)), np.ones(10)),
    ]
    rewirings = NeuronPruning(percentile=50.0, warm_up=0.0).rewire(layers, Clock(10, 10, 100), 0)
    # Of 1, 2, 3, 4 those below 2.5 go; the six without any connection stay out of the count.
    assert_array_equal(np.sort(rewirings[0].topology.positions), [2, 3])
    assert rewirings[1].topology.n_connections == 8


def test_inputs_and_outputs_of_the_network_are_never_pruned():
    layers = network()
    degrees = [layer.topology.degrees() for layer in layers]
    rewirings = NOW.rewire(layers, CLOCK, 0)
    hidden_out = rewirings[0].topology.degrees()[1]
    assert np.count_nonzero(hidden_out) == 30 - 9  # 30 % of 30
    assert np.count_nonzero(rewirings[-1].topology.degrees()[1]) == np.count_nonzero(degrees[-1][1])


def test_between_prunings_the_base_strategy_rewires():
    strategy = NeuronPruning(warm_up=0.4, prune_every=3, base=SET(zeta=0.5))
    layers = network()
    for epoch in range(1, 10):
        clock = Clock(10 * epoch, 10, 100)
        n_grown = sum(each.n_grown for each in strategy.rewire(layers, clock, 0))
        assert (n_grown == 0) == (epoch in (4, 7))


def test_the_base_strategy_ends_with_its_own_schedule():
    strategy = NeuronPruning(warm_up=0.9, base=SET(until=0.5))
    layers = network()
    grown = [
        sum(each.n_grown for each in strategy.rewire(layers, Clock(10 * epoch, 10, 100), 0))
        for epoch in (5, 6)
    ]
    assert grown[0] > 0 == grown[1]


def test_a_dense_network_with_masks_gets_the_same_topology():
    def dense(layers, clock, memory):
        goes = []
        for layer in layers[:-1]:
            strength = np.abs(layer.weights).sum(axis=0)
            in_use = layer.mask.any(axis=0)
            goes.append(in_use & (strength < np.percentile(strength[in_use], 30.0)))
        for layer, out in zip(layers[:-1], goes, strict=True):
            layer.prune(layer.mask & out[None, :])
        for layer, out in zip(layers[1:], goes, strict=True):
            layer.prune(layer.mask & out[:, None])

    assert_twins_agree(NOW, network(dtype=np.float64), dense)


@pytest.mark.parametrize(
    "wrong",
    [{"percentile": 100.0}, {"warm_up": 1.0}, {"prune_every": 0}, {"base": RigL()},
     {"base": SET(every=2)}],
)  # fmt: skip
def test_invalid_parameters_are_refused(wrong):
    [name] = wrong
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        NeuronPruning(**wrong)


def test_every_strategy_that_rewires_by_epochs_can_be_the_base():
    assert NeuronPruning(base=Static()).base == Static()
