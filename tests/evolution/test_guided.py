"""GuidedSET: growth follows strength in the first layer, and ends early."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.evolution import Clock, GuidedSET
from ratoon.evolution.prune import strongest_of_each_sign
from tests.evolution.cases import assert_consistent, network, random_layer

START = Clock(step=10, steps_per_epoch=10, total_steps=100)
EARLY = {"until": 1.0, "anneal": "constant"}


def grown_inputs(rewiring):
    return rewiring.topology.pairs()[0][rewiring.is_grown]


@pytest.mark.parametrize(("power", "strong"), [(1.0, 4.0), (2.0, 2.0)])
def test_inputs_are_drawn_in_proportion_to_a_power_of_their_strength(power, strong):
    strength = np.r_[np.full(50, strong), np.full(50, 1.0), np.zeros(50)]
    layer = random_layer((150, 400), 6000)
    [rewiring] = GuidedSET(strength, power, 0.3, **EARLY).rewire([layer], START, 0)
    counts = np.bincount(grown_inputs(rewiring) // 50, minlength=3)
    assert counts[2] == 0
    # 1,800 new ones, 80 % of them strong; five standard deviations.
    assert abs(counts[0] - 1440) < 5 * np.sqrt(1800 * 0.8 * 0.2)


@pytest.mark.parametrize("grown", ["zero", "init"])
def test_the_weakest_of_each_sign_are_pruned_and_as_many_are_grown(grown):
    layers = network()
    rewirings = GuidedSET(zeta=0.3, grown=grown, **EARLY).rewire(layers, START, 0)
    for layer, rewiring in zip(layers, rewirings, strict=True):
        assert_consistent(layer, rewiring)
        assert rewiring.topology.n_connections == layer.topology.n_connections
    first, second = (
        rewiring.carry_weights(layer.weights)[rewiring.is_grown]
        for layer, rewiring in zip(layers[:2], rewirings[:2], strict=True)
    )
    assert first.all() if grown == "init" else not first.any()
    assert not second.any()
    stayed = rewirings[0].origin[~rewirings[0].is_grown]
    assert_array_equal(np.sort(stayed), strongest_of_each_sign(layers[0].weights, 0.3))


def test_when_strong_inputs_are_full_the_rest_is_grown_uniformly():
    strength = np.zeros(20)
    strength[3] = 1.0
    layer = random_layer((20, 10), 100)
    [rewiring] = GuidedSET(strength, **EARLY).rewire([layer], START, 0)
    assert rewiring.topology.n_connections == 100
    assert (rewiring.topology.degrees()[0][3]) == 10


def test_the_same_seed_grows_the_same():
    layers = network()
    first, again, other = (GuidedSET(**EARLY).rewire(layers, START, s) for s in (0, 0, 1))
    assert_array_equal(first[0].topology.positions, again[0].topology.positions)
    assert first[0].topology != other[0].topology


def test_a_full_layer_does_not_change_and_growth_ends():
    layer = random_layer((5, 4), 20)
    assert layer.topology.is_full
    [rewiring] = GuidedSET(**EARLY).rewire([layer], START, 0)
    assert rewiring.n_grown == 0
    assert GuidedSET().schedule.due_steps(Clock(0, 100, 4000), 4000) == list(range(20, 201, 20))


def test_strengths_must_be_one_number_per_feature():
    with pytest.raises(InvalidInputError, match="none below 0"):
        GuidedSET([1.0, -1.0])
    with pytest.raises(InvalidInputError, match="3 numbers for a network of 150"):
        GuidedSET(np.ones(3), **EARLY).rewire([random_layer((150, 40), 600)], START, 0)
    with pytest.raises(InvalidParameterError, match="power"):
        GuidedSET(power=-1.0)
    with pytest.raises(InvalidParameterError, match="zeta"):
        GuidedSET(zeta=1.0)
    with pytest.raises(InvalidParameterError, match="grown"):
        GuidedSET(grown="one")
