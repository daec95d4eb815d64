"""RigL: an example by hand, and the dense reference."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.evolution import Clock, LayerState, RigL
from ratoon.topology import Topology
from tests.evolution.cases import network, random_layer
from tests.evolution.dense import assert_twins_agree, cosine

START = Clock(step=0, steps_per_epoch=10, total_steps=100)


@pytest.fixture
def layer():
    #    weights, outputs 0 to 2        gradient = activations x errors
    #    input 0    5.0    .    0.1         6    -3     9     (activation 3; errors 2, -1, 3)
    #    input 1     .   -4.0    .          2    -1     3     (activation 1)
    #    input 2     .     .    0.2         0     0     0     (silent)
    topology, order = Topology.from_pairs_with_order((3, 3), [0, 0, 1, 2], [0, 2, 1, 2])
    x, d = np.array([[3.0], [1.0], [0.0]]), np.array([[2.0], [-1.0], [3.0]])
    weights = np.array([5.0, 0.1, -4.0, 0.2])[order]
    return LayerState(topology, weights, (np.ones(4),), signals=lambda: (x, d))


def test_the_weakest_are_pruned_and_the_largest_gradients_grown(layer):
    [rewiring] = RigL(zeta=0.5, anneal="constant").rewire([layer], START, 0)
    # 0.1 and 0.2 go.  Of the empty places, 2 (just vacated, 9), 1 (-3) and 5 (3) lead; of the
    # two with 3 the lower place comes.
    assert_array_equal(np.sort(rewiring.topology.positions), [0, 1, 2, 4])
    grown = rewiring.topology.positions[rewiring.is_grown]
    assert_array_equal(np.sort(grown), [1, 2])
    weights = rewiring.carry_weights(layer.weights)
    assert_array_equal(np.sort(weights), [-4.0, 0.0, 0.0, 5.0])
    assert_array_equal(np.sort(rewiring.carry(layer.state[0])), [0, 0, 1, 1])


def test_the_fraction_replaced_follows_the_cosine():
    layer = random_layer((40, 30), 400)
    for step in (0, 30, 60, 75, 90):
        [rewiring] = RigL(zeta=0.4).rewire([layer], Clock(step, 10, 100), 0)
        assert rewiring.n_grown == round(0.4 * cosine(step / 75) * 400)


def test_when_too_few_positions_have_a_gradient_the_rest_is_random(layer):
    x, d = layer.signals()
    one = replace(layer, signals=lambda: (np.where(x == 3, x, 0), np.where(d == 2, d, 0)))
    drawn = set()
    for seed in range(40):
        [rewiring] = RigL(zeta=0.75, anneal="constant").rewire([one], START, seed)
        assert rewiring.topology.n_connections == 4
        drawn |= set(rewiring.topology.positions[rewiring.is_grown].tolist())
    # 5.0 stays at 0, which is also the only place with a gradient; three of the others are drawn.
    assert drawn == {1, 2, 3, 4, 5, 6, 7, 8}


def test_a_dense_network_with_masks_gets_the_same_topology():
    def dense(layers, clock, memory):
        for layer in layers:
            n_replaced = round(0.3 * cosine(clock.progress / 0.75) * layer.count)
            layer.prune_weakest(n_replaced)
            layer.grow_largest(layer.gradient, n_replaced)

    assert_twins_agree(RigL(), network(dtype=np.float64), dense)


def test_a_missing_gradient_raises_an_error(layer):
    with pytest.raises(InvalidInputError, match="signals"):
        RigL().rewire([replace(layer, signals=None)], START, 0)


@pytest.mark.parametrize("wrong", [{"zeta": 1.0}, {"every": 0}, {"until": 2.0}, {"anneal": "no"}])
def test_invalid_parameters_are_refused(wrong):
    [name] = wrong
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        RigL(**wrong)
