"""SNFS: an example by hand, redistribution, and the dense reference."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.errors import InvalidParameterError
from ratoon.evolution import SNFS, Clock, LayerState, Static, start_state
from ratoon.topology import Topology
from tests.evolution.cases import network, random_layer
from tests.evolution.dense import assert_twins_agree, cosine, proportional

START = Clock(step=10, steps_per_epoch=10, total_steps=10**6)  # zeta is still whole


def layer(momentum):
    #    weights            momentum of the gradient after two minibatches, mu = 0.5
    #    input 0  5.0   .      x = (1, 0) with d = (2, 0), then x = (1, 1) with d = (0, 3):
    #    input 1   .   0.1     0.5 * [[2, 0], [0, 0]] + [[0, 3], [0, 3]] = [[1, 3], [0, 3]]
    topology = Topology.from_pairs((2, 2), [0, 1], [0, 1])
    return LayerState(topology, np.array([5.0, 0.1]), (np.array([momentum, momentum]),))


def watched(strategy, layers):
    batches = [([[1.0], [0.0]], [[2.0], [0.0]]), ([[1.0], [1.0]], [[0.0], [3.0]])]
    state = start_state(strategy, layers, 0)
    for step, (x, d) in enumerate(batches, start=8):
        here = [
            replace(each, signals=lambda x=x, d=d: (np.array(x), np.array(d))) for each in layers
        ]
        state = strategy.watch(state, here, START.at(step))
    return state


def test_connections_grow_where_momentum_is_largest():
    strategy = SNFS(zeta=0.5, momentum=0.5)
    state = watched(strategy, [layer(1.0)])
    assert_array_equal(state["0.x"] @ state["0.d"].T, [[1, 3], [0, 3]])
    [rewiring], _ = strategy.rewire_from(state, [layer(1.0)], START, 0)
    # 0.1 at place 3 goes; of the empty places 1 and 3 have momentum 3, the lower one comes.
    assert_array_equal(np.sort(rewiring.topology.positions), [0, 1])
    assert_array_equal(np.sort(rewiring.carry_weights(layer(1.0).weights)), [0.0, 5.0])


def test_layers_with_more_momentum_get_connections_of_the_others():
    strategy = SNFS(zeta=0.5, momentum=0.5)
    layers = [layer(9.0), layer(1.0)]
    rewirings, _ = strategy.rewire_from(watched(strategy, layers), layers, START, 0)
    assert [each.topology.n_connections for each in rewirings] == [3, 1]


def test_the_rest_of_a_full_layer_goes_to_other_layers():
    layers = [random_layer((3, 3), 8, seed=0), random_layer((30, 20), 100, seed=1)]
    layers[0] = replace(layers[0], state=(1e6 * np.ones(8, dtype=np.float32),))
    strategy = SNFS(zeta=0.5)
    state = strategy.watch(start_state(strategy, layers, 0), layers, START.at(9))
    rewirings, _ = strategy.rewire_from(state, layers, START, 0)
    assert [each.topology.n_connections for each in rewirings] == [9, 99]


def test_a_layer_that_starts_full_does_not_change():
    layers = [random_layer((20, 10), 50), random_layer((4, 3), 12)]
    strategy = SNFS()
    state = strategy.watch(start_state(strategy, layers, 0), layers, START.at(9))
    rewirings, _ = strategy.rewire_from(state, layers, START, 0)
    assert rewirings[1].topology == layers[1].topology
    assert rewirings[0].topology.n_connections == 50


def test_without_momentum_in_the_optimizer_that_of_the_gradients_is_used():
    layers = [random_layer((20, 10), 50, n_states=0, seed=s) for s in (0, 1)]
    loud = replace(layers[1], signals=lambda s=layers[1].signals: tuple(9 * rows for rows in s()))
    strategy = SNFS()
    state = strategy.watch(start_state(strategy, layers, 0), [layers[0], loud], START.at(9))
    rewirings, _ = strategy.rewire_from(state, layers, START, 0)
    first, second = (each.topology.n_connections for each in rewirings)
    assert first + second == 100
    assert second > first


@pytest.mark.parametrize("watch", [6, 60])  # fewer and more than are remembered
def test_a_dense_network_with_masks_gets_the_same_topology(watch):
    def dense(layers, clock, memory):
        zeta = 0.5 * cosine(clock.progress)
        last = clock.step - 1
        momenta = [
            sum(
                0.9 ** (last - step) * signals[i][0] @ signals[i][1].T
                for step, signals in memory["seen"]
                if step > last - 44
            )
            for i in range(len(layers))
        ]
        shares = [np.abs(layer.momentum[layer.mask]).mean() for layer in layers]
        pruned = [round(zeta * layer.count) for layer in layers]
        for layer, count in zip(layers, pruned, strict=True):
            layer.prune_weakest(count)
        grown = proportional(sum(pruned), shares, [(~layer.mask).sum() for layer in layers])
        for layer, momentum, count in zip(layers, momenta, grown, strict=True):
            layer.grow_largest(momentum, count)

    strategy = SNFS(max_columns=None)
    clock = Clock(step=100, steps_per_epoch=10, total_steps=1000)
    assert_twins_agree(strategy, network(dtype=np.float64), dense, watch=watch, clock=clock)


def test_only_strategies_that_watch_have_a_state():
    assert start_state(Static(), network(), 0) == {}


@pytest.mark.parametrize("wrong", [{"zeta": 1.0}, {"momentum": 1.0}, {"max_columns": 1}])
def test_invalid_parameters_are_refused(wrong):
    [name] = wrong
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        SNFS(**wrong)
