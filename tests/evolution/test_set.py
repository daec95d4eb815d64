"""SET: an example by hand, its parameters, in-place and general rewiring."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.errors import InvalidParameterError
from ratoon.evolution import SET, Clock, LayerState
from ratoon.evolution.prune import strongest, strongest_of_each_sign
from ratoon.initialise import weight_scale
from ratoon.topology import GROWN, Topology
from tests.evolution.cases import CLOCK, network, random_layer, sparse_layer
from tests.evolution.dense import assert_twins_agree


@pytest.fixture
def layer():
    #    outputs:    0     1     2     3       a dot is an absent connection
    #    input 0    3.0  -1.0    .     .
    #    input 1     .    0.5    .   -4.0
    topology, order = Topology.from_pairs_with_order((2, 4), [0, 0, 1, 1], [0, 1, 1, 3])
    return LayerState(topology, np.array([3.0, -1.0, 0.5, -4.0], dtype=np.float32)[order])


def test_half_of_each_sign_is_pruned_and_as_many_are_grown(layer):
    [rewiring] = SET(zeta=0.5).rewire([layer], CLOCK, 0)

    survives = rewiring.origin != GROWN
    assert rewiring.topology.n_connections == 4
    assert_array_equal(np.sort(rewiring.topology.positions[survives]), [0, 7])
    assert_array_equal(np.sort(rewiring.carry_weights(layer.weights)[survives]), [-4.0, 3.0])


def test_a_position_just_pruned_may_be_drawn_again(layer):
    drawn = set()
    for seed in range(60):
        [rewiring] = SET(zeta=0.5).rewire([layer], CLOCK, seed)
        drawn |= set(rewiring.topology.positions[rewiring.is_grown].tolist())
    assert drawn == {1, 2, 3, 4, 5, 6}


def test_pruning_by_sign_differs_from_pruning_by_magnitude():
    weights = np.array([0.1, 0.2, 0.3, -5.0, -6.0, -7.0])
    assert_array_equal(strongest_of_each_sign(weights, 1 / 3), [1, 2, 4, 5])
    assert_array_equal(strongest(weights, 2), [2, 3, 4, 5])


def test_of_equal_weights_those_in_lower_slots_are_pruned_first():
    assert_array_equal(strongest(np.array([1.0, -1.0, 1.0, 0.5]), 2), [1, 2])
    assert_array_equal(strongest_of_each_sign(np.array([1.0, 1.0, -1.0, -1.0]), 0.5), [1, 3])


def test_a_dense_network_with_masks_gets_the_same_topology():
    def dense(layers, clock, memory):
        for layer in layers:
            count = layer.count
            for negative in (True, False):
                places = np.flatnonzero(layer.mask & (np.signbit(layer.weights) == negative))
                order = np.argsort(np.abs(layer.weights.ravel()[places]))
                weakest = places[order[: round(0.3 * places.size)]]
                layer.prune(np.unravel_index(weakest, layer.mask.shape))
            layer.grow_as_drawn(count - layer.count)

    assert_twins_agree(SET(zeta=0.3, grown="zero"), network(dtype=np.float64), dense)


def test_grown_zero_does_not_change_the_outputs(layer):
    [rewiring] = SET(zeta=0.5, grown="zero").rewire([layer], CLOCK, 0)
    assert not rewiring.carry_weights(layer.weights)[rewiring.is_grown].any()


def test_new_weights_have_the_scale_of_initial_weights():
    layer = random_layer((300, 200), 6000, init="he")
    [rewiring] = SET(zeta=0.5).rewire([layer], CLOCK, 0)
    sigma = weight_scale(layer.topology, "he")
    # The spread of 3000 deviates strays by 1 / sqrt(6000) = 1.3 % of itself; allow five of those.
    assert rewiring.grown_weights.std() == pytest.approx(sigma, rel=0.065)


def test_annealing_reduces_the_number_of_replaced_connections():
    layer = random_layer()
    grown = [
        SET(zeta=0.5, anneal="linear").rewire([layer], Clock(step, 10, 100), 0)[0].n_grown
        for step in (0, 50, 100)
    ]
    assert grown == [75, pytest.approx(37.5, abs=1), 0]  # each sign is rounded for itself


def test_a_full_layer_does_not_change():
    full = random_layer((5, 4), 20)
    [rewiring] = SET().rewire([full], CLOCK, 0)
    assert rewiring.topology == full.topology
    assert rewiring.n_grown == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("grown", ["init", "zero"])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_in_place_and_general_rewiring_agree_bit_for_bit(dtype, grown, n_threads):
    strategy = SET(zeta=0.3, grown=grown)
    layer = random_layer((700, 500), 9000, dtype=dtype, n_states=2, n_threads=1)
    in_place = sparse_layer(layer)
    general = sparse_layer(layer)

    general.apply(strategy.rewire_layer(layer, CLOCK, 5))
    strategy.rewire_in_place(in_place, CLOCK, 5, n_threads)

    assert in_place.topology == general.topology
    assert_array_equal(in_place.weights, general.weights)
    for ours, theirs in zip(in_place.state, general.state, strict=True):
        assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "wrong", [{"zeta": 1.0}, {"zeta": -0.1}, {"zeta": "much"}, {"grown": "tall"}, {"every": 0}]
)
def test_invalid_parameters_are_refused(wrong):
    [name] = wrong
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        SET(**wrong)
