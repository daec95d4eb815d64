"""DSR: an example by hand, its threshold, and the dense reference."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.errors import InvalidParameterError
from ratoon.evolution import DSR, LayerState, start_state
from ratoon.topology import Topology
from tests.evolution.cases import CLOCK, network, random_layer
from tests.evolution.dense import assert_twins_agree, proportional


def layer(weights, shape=(4, 5)):
    topology = Topology.from_positions(shape, np.arange(len(weights)))
    by_place = np.array(weights)
    return LayerState(topology, by_place[np.argsort(np.argsort(topology.positions))])


def rewire(strategy, layers, state=None):
    state = state or start_state(strategy, layers, 0)
    return strategy.rewire_from(state, layers, CLOCK, 0)


def test_one_threshold_prunes_all_layers_and_growth_follows_the_kept_connections():
    # Below 1: one of four in the first layer, three of four in the second.  The four that went
    # come back by what was left, 3 to 1.
    layers = [layer([5.0, -2.0, 0.5, 3.0]), layer([0.1, -0.2, 4.0, 0.3])]
    rewirings, _ = rewire(DSR(threshold=1.0, zeta=0.5), layers)
    assert [each.n_grown for each in rewirings] == [3, 1]
    assert [each.topology.n_connections for each in rewirings] == [6, 2]
    kept = [np.sort(each.carry_weights(x.weights)[~each.is_grown]) for each, x in
            zip(rewirings, layers, strict=True)]  # fmt: skip
    assert_array_equal(kept[0], [-2, 3, 5])
    assert_array_equal(kept[1], [4])


@pytest.mark.parametrize(
    ("zeta", "factor"), [(0.99, 2.0), (0.55, 1.0), (0.5, 1.0), (0.46, 1.0), (0.25, 0.5)]
)
def test_the_threshold_adapts_to_the_number_pruned(zeta, factor):
    layers = [layer([5.0, -2.0, 0.5, 3.0]), layer([0.1, -0.2, 4.0, 0.3])]  # 4 of 8 go
    _, state = rewire(DSR(threshold=1.0, zeta=zeta, tolerance=0.1), layers)
    assert state["threshold"] == [factor]


def test_the_threshold_converges_to_the_target_number():
    strategy = DSR(zeta=0.1, tolerance=0.9)
    layers = [random_layer((60, 40), 800, seed=s) for s in (0, 1)]
    state = start_state(strategy, layers, 0)
    for _ in range(20):
        rewirings, state = rewire(strategy, layers, state)
    n_grown = sum(each.n_grown for each in rewirings)
    assert 160 / 1.9 <= n_grown <= 160 * 1.9


def test_a_layer_keeps_its_strongest_connection_at_any_threshold():
    rewirings, _ = rewire(DSR(threshold=100.0), [layer([1.0, -3.0, 2.0])])
    assert rewirings[0].topology.n_connections == 3
    assert -3.0 in rewirings[0].carry_weights(layer([1.0, -3.0, 2.0]).weights)


def test_first_and_last_layer_can_be_excluded():
    layers = network()
    rewirings, _ = rewire(DSR(threshold=0.5, skip_first=True, skip_last=True), layers)
    assert [each.n_grown > 0 for each in rewirings] == [False, True, False]


def test_a_dense_network_with_masks_gets_the_same_topology():
    def dense(layers, clock, memory):
        threshold = memory.setdefault("threshold", 0.3)
        before = sum(layer.count for layer in layers)
        for layer in layers:
            layer.prune(layer.mask & (np.abs(layer.weights) < threshold))
        left = [layer.count for layer in layers]
        went = before - sum(left)
        grown = proportional(went, left, [(~layer.mask).sum() for layer in layers])
        for layer, count in zip(layers, grown, strict=True):
            layer.grow_as_drawn(count)
        if went < 0.14 * before / 1.1:
            memory["threshold"] *= 2
        elif went > 0.14 * before * 1.1:
            memory["threshold"] /= 2

    strategy = DSR(threshold=0.3)
    assert_twins_agree(strategy, network(dtype=np.float64), dense, n_rewirings=6)


@pytest.mark.parametrize("wrong", [{"zeta": 1.0}, {"threshold": 0.0}, {"tolerance": -1.0}])
def test_invalid_parameters_are_refused(wrong):
    [name] = wrong
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        DSR(**wrong)
