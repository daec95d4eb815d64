"""Initial topologies: patterns, counts per layer, idle neurons, and the report."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.evolution.contrib.neurons import idle_neurons
from ratoon.initialise import (
    STARTS,
    brf,
    compare_start,
    fan_in,
    from_matrix,
    guided,
    scale_free,
    seed_topologies,
    small_world,
    spread_over_layers,
    start_table,
    start_topology,
)
from ratoon.initialise.patterns import draw_in_rows
from ratoon.network import SparseMLP

SHAPES = st.tuples(st.integers(1, 40), st.integers(1, 40))


def strengths(n):
    return np.arange(n, dtype=float)


PATTERNS = {
    "fan_in": fan_in,
    "small_world": small_world,
    "scale_free": scale_free,
    "brf": brf,
    "guided": lambda shape, n, **named: guided(shape, n, strengths(shape[0]), **named),
}


@pytest.fixture(params=PATTERNS)
def pattern(request):
    return PATTERNS[request.param]


@given(SHAPES, st.floats(0, 1), st.integers(0, 2**32))
@pytest.mark.parametrize("name", PATTERNS)
def test_every_pattern_has_the_exact_number_of_connections(name, shape, density, seed):
    n_connections = round(density * shape[0] * shape[1])
    topology = PATTERNS[name](shape, n_connections, seed=seed)
    assert topology.shape == shape
    assert topology.n_connections == n_connections
    assert np.unique(topology.positions).size == n_connections


def test_different_seeds_give_different_topologies(pattern):
    one, same, other = (pattern((60, 50), 300, seed=seed) for seed in (0, 0, 1))
    assert one == same
    assert one != other


def test_the_number_of_threads_does_not_change_the_topology(pattern):
    assert pattern((60, 50), 300, seed=0) == pattern((60, 50), 300, seed=0, n_threads=3)


def test_more_connections_than_positions_are_refused(pattern):
    with pytest.raises(InvalidInputError, match="positions"):
        pattern((3, 4), 13, seed=0)


def test_very_wide_layers_can_be_drawn(pattern):
    assert pattern((300_000, 300_000), 20_000, seed=0).n_connections == 20_000


def test_a_fixed_fan_in_differs_by_one_at_most():
    degrees = fan_in((200, 30), 1000, seed=0).degrees()[1]
    assert set(degrees.tolist()) == {33, 34}


def test_a_small_world_without_shortcuts_is_a_band():
    dense = small_world((12, 6), 18, seed=0, shortcuts=0.0).to_csr().toarray()
    for output in range(6):
        inputs = np.flatnonzero(dense[:, output])
        assert_array_equal(np.sort((np.arange(3) - 1 + 2 * output) % 12), inputs)


def test_shortcuts_leave_the_rest_of_a_small_world_in_place():
    lattice = small_world((400, 400), 4000, seed=0, shortcuts=0.0)
    moved = small_world((400, 400), 4000, seed=0, shortcuts=0.2)
    common = np.intersect1d(lattice.positions, moved.positions).size
    # 3200 stay on average, deviation sqrt(4000 * 0.2 * 0.8) = 25; some moved ones come back.
    assert 3200 - 5 * 25 < common < 3200 + 5 * 25 + 40


@pytest.mark.parametrize("exponent", [2.2, 3.0])
def test_degrees_of_a_scale_free_start_follow_the_power_law(exponent):
    degrees = scale_free((3000, 3000), 30_000, seed=0, exponent=exponent).degrees()[0]
    # A power law of this exponent makes the fraction of neurons above k fall as k^(1 - exponent).
    # Beyond a few times the mean that is a line in double logarithms.
    ranks = np.arange(20, 200)
    slope = np.polyfit(np.log(ranks), np.log(np.sort(degrees)[::-1][ranks]), 1)[0]
    assert slope == pytest.approx(-1 / (exponent - 1), abs=0.12)


@pytest.mark.parametrize("r", [0.05, 0.4, 1.0])
@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_receptive_fields_have_the_probabilities_of_draws_without_replacement(r, count):
    n_out, n_draws = 9, 4000
    topology = brf((n_draws, n_out), n_draws * count, seed=0, r=r)
    inputs, outputs = topology.pairs()
    steps = (outputs - inputs * n_out // n_draws) % n_out
    distances = np.minimum(np.arange(n_out), n_out - np.arange(n_out))
    p = (1.0 + distances) ** (-(1 - r) / r)
    # Draw one after the other, in proportion to what is left.
    chance = {(): 1.0}
    for _ in range(count):
        after = {}
        for drawn, so_far in chance.items():
            rest = 1 - (p / p.sum())[list(drawn)].sum()
            for place in set(range(n_out)) - set(drawn):
                key = tuple(sorted((*drawn, place)))
                after[key] = after.get(key, 0.0) + so_far * p[place] / p.sum() / rest
        chance = after
    included = np.zeros(n_out)
    for drawn, so_far in chance.items():
        included[list(drawn)] += so_far
    # A count strays by sqrt(n / 4) at most.
    hits = np.bincount(steps, minlength=n_out)
    assert np.abs(hits - n_draws * included).max() < 5 * np.sqrt(n_draws / 4)


@pytest.mark.parametrize("r", [0.2, 0.5, 1.0])
def test_far_outputs_of_wide_layers_are_drawn_with_their_probability(r):
    # Four of 300 outputs: most places are far, and are drawn as events.
    n_out, n_draws, count = 300, 30_000, 4
    inputs, outputs = brf((n_draws, n_out), n_draws * count, seed=1, r=r).pairs()
    steps = (outputs - inputs * n_out // n_draws) % n_out
    distances = np.minimum(steps, n_out - steps)
    p = np.minimum(np.arange(n_out), n_out - np.arange(n_out))
    p = (1.0 + p) ** (-(1 - r) / r)
    rng = np.random.default_rng(0)
    keys = rng.exponential(size=(n_draws, n_out)) / p  # all of them, and the smallest are taken
    drawn = np.argpartition(keys, count, axis=1)[:, :count]
    reference = np.minimum(drawn, n_out - drawn)
    edges = [0, 1, 2, 4, 8, 20, 50, 100, 151]
    ours, theirs = (np.histogram(d, bins=edges)[0] for d in (distances, reference))
    assert np.all(np.abs(ours - theirs) < 5 * np.sqrt(ours + theirs + 1))


def test_inputs_of_receptive_fields_have_the_same_number_of_connections():
    topology = brf((700, 40), 1000, seed=0)
    assert set(topology.degrees()[0].tolist()) == {1, 2}
    assert set(brf((5, 400), 1000, seed=0).degrees()[0].tolist()) == {200}


def test_the_smallest_r_gives_a_band_and_the_largest_a_uniform_draw():
    band = brf((20, 20), 60, seed=0, r=1e-3).to_csr().toarray()
    distance = np.abs(np.subtract.outer(np.arange(20), np.arange(20)))
    assert_array_equal(band, np.minimum(distance, 20 - distance) <= 1)
    outputs = brf((4000, 50), 20_000, seed=0, r=1.0).degrees()[1]
    # 400 on average, deviation sqrt(20,000 * 0.02) = 20.
    assert np.abs(outputs - 400).max() < 5 * 20


@pytest.mark.parametrize("r", [0.0, 1.5, np.nan])
def test_an_invalid_r_is_refused(r):
    with pytest.raises(InvalidParameterError, match="`r`"):
        brf((3, 4), 5, seed=0, r=r)


def test_a_guided_start_connects_inputs_in_proportion_to_their_strength():
    strength = np.array([0.0, 1.0, 2.0, 7.0])
    degrees = guided((4, 10_000), 5000, strength, seed=0).degrees()[0]
    expected = 500 * strength
    # Multinomial: deviations are at most sqrt(5000 * 0.7 * 0.3) = 32.
    assert np.abs(degrees - expected).max() < 5 * 32
    assert degrees[0] == 0


def test_the_rest_of_a_full_input_goes_to_other_inputs():
    degrees = guided((3, 10), 20, [1e9, 1.0, 0.0], seed=0).degrees()[0]
    assert_array_equal(degrees, [10, 10, 0])
    assert_array_equal(guided((3, 10), 25, [1e9, 1.0, 0.0], seed=0).degrees()[0], [10, 10, 5])


@pytest.mark.parametrize("wrong", [[1.0, 2.0], [1.0, 2.0, -1.0], [1.0, 2.0, np.nan]])
def test_an_invalid_strength_is_refused(wrong):
    with pytest.raises(InvalidInputError, match="strength"):
        guided((3, 4), 5, wrong, seed=0)


def test_rows_are_drawn_uniformly_also_when_nearly_full():
    rng = np.random.default_rng(0)
    counts = np.array([2, 5])
    hits = np.zeros((2, 6))
    for _ in range(1500):
        rows, columns = draw_in_rows(counts, 6, rng)
        np.add.at(hits, (rows, columns), 1)
    # Each column of the first row comes with 1/3 (deviation 18), of the second with 5/6 (14).
    assert np.abs(hits[0] - 500).max() < 5 * 18.3
    assert np.abs(hits[1] - 1250).max() < 5 * 14.4


def test_any_matrix_can_be_a_start():
    matrix = np.array([[0.0, 1.5, 0.0], [-2.0, 0.0, 3.0]])
    topology, weights = from_matrix(matrix)
    assert_array_equal(topology.to_csr(weights).toarray(), matrix)


@pytest.mark.parametrize("start", STARTS)
def test_networks_start_with_any_pattern_by_name(start):
    network = SparseMLP.start((60, 40, 10), density=0.2, start=start, seed=0)
    if start != "paper":
        assert [layer.n_connections for layer in network.layers] == [480, 80]
    assert start_topology((9, 9), density=0.3, start=start, seed=3).shape == (9, 9)


# -------------------------------------------------------------------------- counts over layers


@given(st.lists(st.integers(1, 400), min_size=2, max_size=5), st.floats(0.001, 1.0))
def test_the_network_has_the_requested_density(widths, density):
    counts = spread_over_layers(widths, density)
    positions = [a * b for a, b in pairwise(widths)]
    # Every layer is rounded, and none is left empty.
    assert abs(sum(counts) - density * sum(positions)) <= 1 + 1.5 * len(counts)
    assert all(1 <= count <= size for count, size in zip(counts, positions, strict=True))


def test_erdos_renyi_densities_are_those_of_one_epsilon():
    widths = (500, 300, 200, 100)
    counts = spread_over_layers(widths, 0.05)
    epsilons = [count / sum(pair) for count, pair in zip(counts, pairwise(widths), strict=True)]
    assert epsilons == pytest.approx([epsilons[0]] * 3, rel=1e-2)


@pytest.mark.parametrize("wrong", [{"density": 0.0}, {"density": 0.5, "spread": "evenly"}])
def test_an_invalid_spread_is_refused(wrong):
    with pytest.raises(InvalidParameterError):
        spread_over_layers((10, 10), **wrong)


# -------------------------------------------------------------------------- reserves, reports


def test_the_other_neurons_of_a_seed_network_are_idle():
    topologies = seed_topologies((30, 50, 40, 5), (10, 8), density=0.5, seed=0)
    assert [topology.shape for topology in topologies] == [(30, 50), (50, 40), (40, 5)]
    assert_array_equal(idle_neurons(*topologies[:2])[-40:], np.arange(10, 50))
    assert idle_neurons(*topologies[1:]).size >= 32
    network = SparseMLP.start((30, 50, 40, 5), topologies=topologies, seed=0)
    assert network.n_connections == 150 + 40 + 20


@pytest.mark.parametrize("in_use", [(10,), (0, 8), (51, 8)])
def test_a_seed_network_that_does_not_fit_is_refused(in_use):
    with pytest.raises(InvalidParameterError, match="in_use"):
        seed_topologies((30, 50, 40, 5), in_use, density=0.5, seed=0)


def test_requested_and_achieved_density_are_both_reported():
    topologies = [
        start_topology((16_000, 2), epsilon=10, seed=0, start=s) for s in ("exact", "paper")
    ]
    exact, paper = compare_start(topologies, epsilon=10)
    assert exact.requested_density == paper.requested_density == exact.achieved_density == 1.0
    assert 0.99 < paper.achieved_density < 0.996
    assert "0.99" in start_table([exact, paper])


@pytest.mark.parametrize(
    ("pattern", "wrong"), [(small_world, {"shortcuts": 1.5}), (scale_free, {"exponent": 2.0})]
)
def test_patterns_with_invalid_parameters_are_refused(pattern, wrong):
    [name] = wrong
    with pytest.raises(InvalidParameterError, match=name):
        pattern((10, 10), 20, seed=0, **wrong)
