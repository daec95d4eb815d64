"""Analysis of topologies."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.errors import InvalidInputError
from ratoon.evolution.analysis import (
    degree_distribution,
    distance,
    exploration,
    fit_power_law,
    matched_distance,
)
from ratoon.initialise import scale_free
from ratoon.topology import Topology


def test_degrees_are_counted():
    topology = Topology.from_pairs((4, 3), [0, 0, 1, 3], [0, 1, 1, 1])
    assert_array_equal(degree_distribution(topology.degrees()[0]), [[0, 1, 2], [1, 2, 1]])
    assert_array_equal(degree_distribution(topology.degrees()[1]), [[0, 1, 3], [1, 1, 1]])


@pytest.mark.parametrize("exponent", [2.2, 2.7, 3.5])
def test_the_exponent_of_a_power_law_is_found(exponent):
    rng = np.random.default_rng(0)
    degrees = np.floor(5.5 * rng.random(30_000) ** (-1 / (exponent - 1)) + 0.5)
    fit = fit_power_law(degrees, least=6)
    # The estimate strays by (exponent - 1) / sqrt(n), at most 0.014 here.
    assert fit.exponent == pytest.approx(exponent, abs=0.08)
    assert fit.n_tail == 30_000
    assert fit.distance < 0.02


def test_the_tail_is_found_where_the_rest_follows_no_power_law():
    rng = np.random.default_rng(1)
    tail = np.floor(19.5 * rng.random(5000) ** (-1 / 1.5) + 0.5)
    fit = fit_power_law(np.concatenate((rng.integers(1, 20, size=20_000), tail)))
    assert 15 <= fit.least <= 40
    assert fit.exponent == pytest.approx(2.5, abs=0.15)


def test_a_random_topology_fits_worse_than_a_scale_free_one():
    random = Topology.random((2000, 2000), 20_000, seed=0).degrees()[0]
    scaled = scale_free((2000, 2000), 20_000, seed=0).degrees()[0]
    assert fit_power_law(scaled, least=5).distance < fit_power_law(random, least=5).distance / 3


def test_a_power_law_of_equal_degrees_is_refused():
    with pytest.raises(InvalidInputError, match="degrees"):
        fit_power_law([3, 3, 3, 0])


def test_exploration_never_falls_and_counts_a_position_once():
    rng = np.random.default_rng(0)
    steps = [rng.choice(1000, size=100, replace=False) for _ in range(10)]
    rates = exploration(steps, 1000)
    union = [len(set().union(*(set(s.tolist()) for s in steps[: k + 1]))) / 1000 for k in range(10)]
    assert rates == union


def test_distance_is_0_to_itself_and_1_to_the_complement():
    one = Topology.random((20, 10), 100, seed=0)
    rest = np.setdiff1d(np.arange(200), one.positions)
    assert distance(one, one) == 0.0
    assert distance(one, Topology.from_positions((20, 10), rest)) == 1.0
    assert distance(Topology.random((3, 3), 0, seed=0), Topology.random((3, 3), 0, seed=0)) == 0.0


def test_matching_undoes_a_shuffle_of_neurons():
    one = Topology.random((60, 40), 500, seed=0)
    rows, columns = one.pairs()
    shuffled = Topology.from_pairs(
        (60, 40), rows, np.random.default_rng(0).permutation(40)[columns]
    )
    assert distance(one, shuffled) > 0.6
    assert matched_distance(one, shuffled) == pytest.approx(0.0, abs=1e-12)
    assert 0.3 < matched_distance(one, Topology.random((60, 40), 500, seed=1)) < 0.9


def test_layers_of_different_shapes_are_refused():
    one, other = Topology.random((4, 3), 2, seed=0), Topology.random((3, 4), 2, seed=0)
    for measure in (distance, matched_distance):
        with pytest.raises(InvalidInputError, match="compare"):
            measure(one, other)
    wide = Topology.random((3, 5000), 9, seed=0)
    with pytest.raises(InvalidInputError, match="distance"):
        matched_distance(wide, wide)
