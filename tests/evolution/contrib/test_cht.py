"""CHT and CHTs: examples by hand, dead neurons, stopped layers, and the dense references."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ratoon.errors import InvalidParameterError
from ratoon.evolution import CHT, CHTs, CHTss, Clock, LayerState, start_state
from ratoon.evolution.contrib.cht import without_dead
from ratoon.evolution.prune import strongest
from ratoon.kernels.paths import best_by_paths
from ratoon.topology import Topology
from tests.evolution.cases import CLOCK, network, random_layer
from tests.evolution.dense import assert_twins_agree, path_scores


def layer(shape, weights, **changes):
    """Return a layer from a dictionary of (input, output) to weight."""
    inputs, outputs = zip(*weights, strict=True)
    topology, order = Topology.from_pairs_with_order(shape, inputs, outputs)
    return LayerState(topology, np.array(list(weights.values()), dtype=float)[order], **changes)


def example():
    #    output      0   1   2   3
    #    input 0    5.0
    #    input 1    4.0 3.0
    #    input 2    2.0     6.0 7.0
    #    input 3        0.1
    return layer(
        (4, 4),
        {(0, 0): 5, (1, 0): 4, (1, 1): 3, (2, 0): 2, (2, 2): 6, (2, 3): 7, (3, 1): 0.1},
    )


def test_the_best_closed_path_replaces_the_weakest_connection():
    # Without 0.1, the only path from input 0 to output 1 passes output 0 and input 1.  Input 1 has
    # one connection that leads elsewhere than to neighbours of input 0, and output 0 has two that
    # lead elsewhere than to neighbours of output 1: 1 / sqrt(1 * 2) is the score of (0, 1) and of
    # (2, 1).  Paths through input 2 have 1 / sqrt(2 * 2).  Of the two the lower position is grown.
    found, scores = best_by_paths(
        example().topology, strongest(example().weights, 1), "ch3_l3p", 16
    )
    assert_array_equal(found, [1, 2, 3, 6, 7, 9])
    assert_allclose(scores, [0.5**0.5, 0.5, 0.5, 0.5, 0.5, 0.5**0.5])
    [rewiring] = CHT(zeta=1 / 7).rewire([example()], CLOCK, 0)
    grown = rewiring.topology.positions[rewiring.is_grown]
    assert_array_equal(grown, [1])
    assert_array_equal(rewiring.carry_weights(example().weights)[rewiring.is_grown], [0.0])
    assert rewiring.topology.n_connections == 7


def test_the_rest_is_drawn_where_no_path_leads():
    one = layer((3, 3), {(0, 0): 1.0, (1, 1): 2.0, (2, 2): 3.0})
    drawn = set()
    for seed in range(60):
        [rewiring] = CHT(zeta=0.34).rewire([one], CLOCK, seed)
        assert rewiring.topology.n_connections == 3
        drawn |= set(rewiring.topology.positions[rewiring.is_grown].tolist())
    assert drawn == {0, 1, 2, 3, 5, 6, 7}, "position 0 was pruned; 4 and 8 are kept"


def test_connections_of_dead_neurons_are_removed_backward_then_forward():
    first = layer((1, 3), {(0, 0): 1.0, (0, 1): 1.0})
    second = layer((3, 3), {(0, 0): 1.0, (1, 1): 1.0, (2, 2): 1.0})
    third = layer((3, 1), {(0, 0): 1.0, (2, 0): 1.0})
    layers = [first, second, third]
    left = without_dead(layers, [np.arange(each.topology.n_connections) for each in layers])
    positions = [
        np.sort(each.topology.positions[slots]).tolist()
        for each, slots in zip(layers, left, strict=True)
    ]
    # Backward: neuron 1 of the second hidden layer has no outgoing connection, so (1, 1) is
    # removed; then neuron 1 of the first hidden layer has none, so (0, 1) is removed.
    # Forward: neuron 2 of the first hidden layer has no incoming connection, so (2, 2) is removed,
    # then (2, 0) of the last layer.
    assert positions == [[0], [0], [0]]


def test_layers_that_do_not_change_still_count_as_connected():
    first = layer((1, 2), {(0, 0): 1.0, (0, 1): 1.0})
    second = layer((2, 1), {(0, 0): 1.0})
    assert_array_equal(without_dead([first, second], [np.arange(2), None])[0], [0])
    assert without_dead([first, second], [None, np.arange(1)])[0] is None


def test_a_layer_without_connections_leaves_its_neighbours_as_they_are():
    layers = network()
    layers[1] = replace(random_layer((30, 25), 0), n_threads=1)
    left = without_dead(layers, [np.arange(each.topology.n_connections) for each in layers])
    assert [slots.size for slots in left] == [each.topology.n_connections for each in layers]


def test_unrelated_layers_do_not_share_neurons():
    layers = [random_layer((30, 20), 60), random_layer((25, 10), 20)]
    left = without_dead(layers, [np.arange(60), np.arange(20)])
    assert [slots.size for slots in left] == [60, 20]


def test_every_removed_connection_is_replaced_also_those_of_dead_neurons():
    layers = network(density=0.05, widths=(60, 50, 40, 30))
    rewirings = CHT().rewire(layers, CLOCK, 0)
    for before, rewiring in zip(layers, rewirings, strict=True):
        assert rewiring.topology.n_connections == before.topology.n_connections
    n_pruned = round(0.3 * layers[0].topology.n_connections)
    assert rewirings[0].n_grown > n_pruned, "or no neuron was dead"


def test_a_layer_stops_when_it_grows_what_was_just_pruned():
    # Only position 3 is empty, so what is grown is it or what was pruned.
    full = layer((2, 3), {(0, 0): 5, (0, 1): 6, (0, 2): 7, (1, 1): 0.1, (1, 2): 0.2})
    strategy = CHT(zeta=0.4, overlap=0.4)
    state = start_state(strategy, [full], 0)
    assert_array_equal(state["stopped"], [False])
    [rewiring], state = strategy.rewire_from(state, [full], CLOCK, 0)
    assert rewiring.n_grown == 2
    assert_array_equal(state["stopped"], [True])
    [rewiring], state = strategy.rewire_from(state, [full], CLOCK, 1)
    assert rewiring.n_grown == 0
    never = CHT(zeta=0.4, overlap=1.0)
    assert not never.rewire_from(start_state(never, [full], 0), [full], CLOCK, 0)[1]["stopped"][0]


@pytest.mark.parametrize("score", ["ch3_l3p", "ch2_l3n"])
def test_a_dense_network_with_masks_gets_the_same_topology(score):
    def dense(layers, clock, memory):
        removed = [layer.count for layer in layers]
        for layer in layers:
            layer.prune_weakest(round(0.3 * layer.count))
        for before, after in reversed(list(itertools.pairwise(layers))):
            before.prune(before.mask & ~after.mask.any(axis=1)[None, :])
        for before, after in itertools.pairwise(layers):
            after.prune(after.mask & ~before.mask.any(axis=0)[:, None])
        for layer, count in zip(layers, removed, strict=True):
            n_grown = count - layer.count
            scores = path_scores(layer.mask, score).ravel()
            # Sums in another order differ in the last digits, so ties are compared by score.
            best = np.sort(scores)[::-1][:n_grown]
            np.testing.assert_allclose(np.sort(scores[layer.drawn])[::-1], best, rtol=1e-12)
            layer.grow_as_drawn(n_grown)

    layers = network(widths=(30, 24, 18, 5), density=0.25, dtype=np.float64)
    strategy = CHT(score=score, overlap=1.0)
    assert_twins_agree(strategy, layers, dense, n_rewirings=3)


def test_the_exponent_grows_from_one():
    strategy = CHTs(sharpness=3.0, until=0.5)
    at = [strategy.exponent(Clock(step, 10, 100)) for step in (0, 25, 50, 80)]
    assert at == [1.0, 2.0, 3.0, 3.0]
    assert CHTs(until=0.0).exponent(CLOCK) == 3.0


@pytest.mark.parametrize(("step", "exponent"), [(0, 1), (100, 3)])
def test_connections_are_kept_in_proportion_to_a_power_of_their_weight(step, exponent):
    one = layer((2, 3), {(0, 0): 1.0, (0, 1): -2.0, (1, 2): 4.0, (1, 0): 0.0})
    p = np.abs(one.weights) ** exponent
    p /= p.sum()
    n_draws = 3000
    kept = [CHTs(zeta=0.75).kept(one, 4, Clock(step, 10, 100), seed) for seed in range(n_draws)]
    hits = np.bincount(np.concatenate(kept), minlength=4)
    assert hits.sum() == n_draws
    assert hits[one.weights == 0] == 0
    # A count strays by sqrt(n / 4) at most.
    assert np.abs(hits - n_draws * p).max() < 5 * np.sqrt(n_draws / 4)


def test_weights_of_zero_are_pruned_first():
    weights = np.zeros(150)
    weights[::3] = 1e-30
    zeros = random_layer(weights=weights)
    kept = CHTs(zeta=0.5, sharpness=1.0).kept(zeros, 150, CLOCK, 0)
    assert np.isin(np.flatnonzero(weights), kept).all()


def test_chts_grows_only_where_paths_lead_if_there_are_enough():
    before = random_layer((60, 50), 400, dtype=np.float64)
    [rewiring] = CHTs().rewire([before], CLOCK, 0)
    [other] = CHTs().rewire([before], CLOCK, 1)
    assert rewiring.topology != other.topology
    kept = rewiring.topology.positions[~rewiring.is_grown]
    mask = np.zeros((60, 50), dtype=bool)
    mask.ravel()[kept] = True
    scores = path_scores(mask, "ch2_l3n").ravel()
    assert (scores[rewiring.topology.positions[rewiring.is_grown]] > 0).all()
    assert rewiring.n_grown == 120


def test_the_number_of_connections_falls_along_a_sigmoid_curve():
    strategy = CHTss(final=0.02, decay_until=0.8)
    levels = [strategy.level(progress) for progress in np.linspace(0, 1, 101)]
    assert levels[0] == 1.0
    assert_allclose(levels[80:], 0.02)
    assert np.all(np.diff(levels) <= 0)
    # The logistic curve of 6 (2 t - 1), scaled so that it starts at 0 and ends at 1.
    t = np.linspace(0, 1, 81)
    curve = 1 / (1 + np.exp(-6 * (2 * t - 1)))
    curve = (curve - curve[0]) / (curve[-1] - curve[0])
    assert_allclose(levels[:81], 1 - 0.98 * curve, atol=1e-12)


def test_layers_shrink_to_their_budget_and_full_ones_do_not_change():
    layers = [random_layer((60, 50), 1500), random_layer((50, 4), 200)]
    strategy = CHTss(final=0.1, decay_until=0.5)
    state = start_state(strategy, layers, 0)
    for step, count in ((0, 1500), (25, 825), (50, 150), (90, 150)):
        clock = Clock(step, 10, 100)
        assert strategy.budget(layers, clock) == [count, 200]
        rewirings, state = strategy.rewire_from(state, layers, clock, 0)
        assert [each.topology.n_connections for each in rewirings] == [count, 200]
        assert rewirings[0].n_grown >= round(0.3 * count)
        assert rewirings[1].n_grown == 0


def test_a_much_smaller_layer_gets_other_tiles():
    before = random_layer((900, 20_000), 40_000)
    strategy = CHTss(final=0.01, decay_until=0.1)
    [rewiring] = strategy.rewire([before], CLOCK, 0)
    assert rewiring.topology.n_connections == 400
    assert rewiring.topology.tile != before.topology.tile
    assert_array_equal(
        rewiring.topology.positions[~rewiring.is_grown],
        before.topology.positions[rewiring.origin[~rewiring.is_grown]],
    )


@pytest.mark.parametrize(
    ("strategy", "wrong"),
    [
        (CHT, {"zeta": 1.0}),
        (CHT, {"score": "ch4"}),
        (CHT, {"overlap": 1.5}),
        (CHT, {"every": 0}),
        (CHTs, {"score": "l3"}),
        (CHTs, {"sharpness": 0.5}),
        (CHTs, {"sharpness": np.inf}),
        (CHTss, {"final": 0.0}),
        (CHTss, {"decay_until": 1.5}),
    ],
)
def test_invalid_parameters_are_refused(strategy, wrong):
    [name] = wrong
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        strategy(**wrong)
