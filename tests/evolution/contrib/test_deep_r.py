"""DEEP R: an example by hand, signs, noise, and the dense reference."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ratoon.errors import InvalidParameterError
from ratoon.evolution import DeepR, LayerState, start_state
from ratoon.evolution.contrib.deep_r import draw_signs
from ratoon.topology import Topology
from tests.evolution.cases import CLOCK, network, random_layer
from tests.evolution.dense import assert_twins_agree

QUIET = DeepR(alpha=0.5, temperature=0.0)


def layer(weights, learning_rate=0.1):
    topology = Topology.from_positions((1, 6), np.arange(len(weights)))
    return LayerState(topology, np.array(weights), learning_rate=learning_rate)


def test_a_connection_whose_weight_crosses_zero_is_replaced():
    before = layer([2.0, -1.0, 0.3, -0.01])
    state = start_state(QUIET, [before], 0)
    # A step of the optimizer: the third weight has changed its sign.
    moved = replace(before, weights=np.array([1.5, -1.2, -0.1, -0.01]))
    [rewiring], after = QUIET.rewire_from(state, [moved], CLOCK, 0)
    # All are drawn to zero by 0.1 * 0.5 = 0.05, which takes the fourth across it.
    weights = rewiring.carry_weights(moved.weights)
    survives = ~rewiring.is_grown
    assert_array_equal(rewiring.topology.positions[survives], [0, 1])
    assert_allclose(weights[survives], [1.45, -1.15])
    assert_array_equal(weights[rewiring.is_grown], [0, 0])
    assert_array_equal(after["0.signs"][survives], [1, -1])
    assert rewiring.topology.n_connections == 4


def test_a_new_connection_keeps_its_first_sign():
    before = layer([2.0, -1.0, 0.3, -0.01])
    state = start_state(QUIET, [before], 0)
    moved = replace(before, weights=np.array([1.5, -1.2, -0.1, -0.01]))
    [rewiring], state = QUIET.rewire_from(state, [moved], CLOCK, 0)
    signs = state["0.signs"]
    new = LayerState(rewiring.topology, np.ones(4), learning_rate=0.1)
    [again], _ = QUIET.rewire_from(state, [new], CLOCK, 1)
    # Every weight is now positive: exactly those with a negative sign are pruned.
    assert again.n_grown == np.count_nonzero(signs < 0)


def test_first_signs_are_those_of_the_weights_and_random_for_zeros():
    zero = random_layer((100, 100), 5000, weights=np.zeros(5000))
    signs = start_state(DeepR(), [zero], 0)["0.signs"]
    # The sum of 5000 signs strays by 71.
    assert abs(int(signs.sum(dtype=int))) < 5 * 71
    some = random_layer()
    assert_array_equal(start_state(DeepR(), [some], 0)["0.signs"], np.sign(some.weights))


def test_the_variance_of_the_noise_follows_the_temperature():
    strategy = DeepR(alpha=0.0, temperature=0.02, every=4)
    wide = random_layer((200, 200), 20_000, learning_rate=0.1, weights=np.full(20_000, 9.0))
    [rewiring], _ = strategy.rewire_from(start_state(strategy, [wide], 0), [wide], CLOCK, 0)
    step = rewiring.carry_weights(wide.weights) - 9.0
    # sqrt(2 * 4 * 0.1 * 0.02); the spread of 20,000 numbers strays by 0.5 % of itself.
    assert step.std() == pytest.approx(np.sqrt(0.016), rel=0.025)
    assert abs(step.mean()) < 5 * np.sqrt(0.016 / 20_000)


def test_connections_move_between_layers_in_proportion_to_empty_positions():
    layers = [random_layer((100, 50), 1000, seed=0), random_layer((100, 100), 1000, seed=1)]
    state = start_state(QUIET, layers, 0)
    flipped = [replace(each, weights=-each.weights) for each in layers]
    rewirings, _ = QUIET.rewire_from(state, flipped, CLOCK, 0)
    grown = [each.n_grown for each in rewirings]
    assert sum(grown) == 2000, "all have crossed zero"
    # 5000 and 10,000 places are empty: 2000 draws fall to the first with a mean of 667 and a
    # deviation of sqrt(2000 * 1/3 * 2/3 * 13/15) = 20.
    assert abs(grown[0] - 667) < 5 * 20


def test_signs_are_equally_likely():
    assert abs(int(draw_signs(10_000, seed=0).sum(dtype=int))) < 5 * 100


def test_a_dense_network_with_masks_gets_the_same_topology():
    alpha, rate = 0.5, 0.01
    signs = {}

    def dense(layers, clock, memory):
        went = 0
        for i, layer in enumerate(layers):
            theta = layer.weights * signs[i] - np.where(layer.mask, rate * alpha, 0.0)
            layer.weights[:] = theta * signs[i]
            crossed = layer.mask & (theta < 0)
            went += crossed.sum()
            layer.prune(crossed)
        assert sum(layer.drawn.size for layer in layers) == went, "the total stays"
        for i, layer in enumerate(layers):
            layer.grow_as_drawn(layer.drawn.size)
            drawn = memory["signs"][i]
            signs[i][layer.mask] = drawn[layer.mask]

    class Spy(DeepR):
        """Records the drawn signs by position, for the twin."""

        def rewire_from(self, state, layers, clock, seed):
            rewirings, after = super().rewire_from(state, layers, clock, seed)
            for i, rewiring in enumerate(rewirings):
                by_place = np.zeros(rewiring.topology.n_positions)
                by_place[rewiring.topology.positions] = after[f"{i}.signs"]
                drawn_signs[i] = by_place.reshape(rewiring.topology.shape)
            return rewirings, after

    drawn_signs = {}
    layers = network(dtype=np.float64)
    for i, each in enumerate(layers):
        signs[i] = np.zeros(each.topology.shape)
        signs[i].ravel()[each.topology.positions] = np.sign(each.weights)
    strategy = Spy(alpha=alpha, temperature=0.0)

    def drawn_signs_dense(twins, clock, memory):
        memory["signs"] = drawn_signs
        dense(twins, clock, memory)

    assert_twins_agree(strategy, layers, drawn_signs_dense, n_rewirings=6)


@pytest.mark.parametrize("wrong", [{"alpha": -1.0}, {"temperature": float("nan")}, {"every": 0}])
def test_invalid_parameters_are_refused(wrong):
    [name] = wrong
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        DeepR(**wrong)
