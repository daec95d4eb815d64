"""How many connections a layer starts with, which ones, and their weights."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ratoon.errors import InvalidParameterError
from ratoon.initialise import (
    connections_wanted,
    density_of,
    first_weights,
    start_topology,
    weight_scale,
)
from ratoon.topology import Topology


def connections(widths, start, seed=0):
    return sum(
        start_topology(shape, epsilon=10, start=start, seed=seed + index).n_connections
        for index, shape in enumerate(pairwise(widths))
    )


@pytest.mark.parametrize(
    ("widths", "of_the_paper"),
    [
        ((54_675, 27_500, 27_500, 18), 1_582_376),  # Leukemia
        ((11_340, 9_000, 9_000, 3), 409_033),  # CLL-SUB-111
        ((19_993, 16_000, 16_000, 2), 711_305),  # SMK-CAN-187
    ],
)
def test_the_start_of_the_paper_has_its_number_of_connections(widths, of_the_paper):
    assert connections(widths, "paper") == pytest.approx(of_the_paper, rel=0.001)


def test_the_papers_count_for_gli_85_is_that_of_22_000_hidden_neurons():
    # One of its tables says 20,000 hidden neurons, another 486,350 connections.
    assert connections((22_283, 22_000, 2), "paper") == pytest.approx(486_350, rel=0.001)
    assert connections((22_283, 20_000, 2), "paper") == pytest.approx(462_400, rel=0.001)


def test_the_exact_start_has_the_expected_connections_per_network():
    assert connections((11_340, 9_000, 9_000, 3), "exact") == 203_400 + 180_000 + 27_000


def test_drawing_with_repetition_gives_the_expected_number():
    # c positions and d draws leave c (1 - (1 - 1/c)^d) of them taken: 99.4 percent of 32,000 for
    # the output layer of SMK-CAN-187; the standard deviation is below 13.
    expected = 32_000 * (1 - (1 - 1 / 32_000) ** 160_020)
    counts = [
        start_topology((16_000, 2), epsilon=10, start="paper", seed=seed).n_connections
        for seed in range(3)
    ]
    assert counts == pytest.approx([expected] * 3, abs=5 * 13)
    assert len(set(counts)) > 1


@given(
    n_in=st.integers(1, 60),
    n_out=st.integers(1, 60),
    density=st.floats(0.01, 1.0),
    seed=st.integers(0, 2**40),
)
def test_the_exact_start_has_the_exact_number(n_in, n_out, density, seed):
    wanted = round(density * n_in * n_out)
    if wanted == 0:
        with pytest.raises(InvalidParameterError, match="no connections"):
            start_topology((n_in, n_out), density=density, seed=seed)
        return
    topology = start_topology((n_in, n_out), density=density, seed=seed)
    assert topology.n_connections == wanted
    assert np.unique(topology.positions).size == wanted


def test_every_position_is_equally_likely():
    # 400 starts of 6 of 24 positions: 100 expected at each, deviation 8.7; allow five of them.
    counts = np.zeros(24)
    for seed in range(400):
        counts[start_topology((6, 4), density=0.25, seed=seed).positions] += 1
    assert np.abs(counts - 100).max() < 5 * 8.7


def test_equivalent_epsilon_and_density_give_the_same_number():
    assert density_of((1000, 500), epsilon=20) == 0.06
    assert connections_wanted((1000, 500), epsilon=20) == 30_000
    assert connections_wanted((1000, 500), density=0.06) == 30_000


def test_a_large_epsilon_gives_a_dense_layer():
    topology = start_topology((30, 4), epsilon=10, seed=0)
    assert topology.is_full


def test_positions_beyond_32_bits_are_counted_right():
    assert connections_wanted((10**6, 10**6), density=1e-7) == 100_000


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "either `epsilon` or `density`"),
        ({"epsilon": 1.0, "density": 0.5}, "either `epsilon` or `density`"),
        ({"density": 0.0}, "in \\(0, 1\\]"),
        ({"density": 1.5}, "in \\(0, 1\\]"),
        ({"density": float("nan")}, "in \\(0, 1\\]"),
        ({"density": 1e-9}, "at least 5e-05"),
        ({"epsilon": -1.0}, "positive"),
        ({"epsilon": float("inf")}, "positive"),
        ({"epsilon": 1e-8}, "adam_eps"),
    ],
)
def test_invalid_amounts_are_refused_with_advice(given, message):
    with pytest.raises(InvalidParameterError, match=message):
        connections_wanted((200, 100), **given)


def test_unknown_starts_and_inits_are_refused():
    with pytest.raises(InvalidParameterError, match="'exact', 'paper'"):
        start_topology((5, 5), density=0.5, seed=0, start="approximate")
    with pytest.raises(InvalidParameterError, match="'he', 'set', 'zero'"):
        weight_scale(Topology.full((5, 5)), "xavier")


def test_the_start_depends_on_the_seed_and_not_on_threads():
    one, other = (start_topology((300, 200), density=0.1, seed=seed) for seed in (1, 2))
    assert one != other
    assert one == start_topology((300, 200), density=0.1, seed=1, n_threads=3)


@pytest.mark.parametrize(("init", "sigma"), [("he", np.sqrt(2 / 20)), ("set", 0.1)])
def test_initial_weights_have_the_documented_spread(init, sigma):
    topology = start_topology((1000, 1000), density=0.02, seed=0)  # 20 connections an output
    weights = first_weights(topology, seed=0, init=init)
    assert weights.dtype == np.float32
    # 20,000 of them: the standard error of their spread is sigma / 200, of their mean sigma / 141.
    assert weights.std() == pytest.approx(sigma, abs=5 * sigma / 200)
    assert weights.mean() == pytest.approx(0, abs=5 * sigma / 141)


def test_init_zero_gives_zeros():
    assert not first_weights(Topology.full((4, 3)), seed=0, init="zero").any()


def test_he_assumes_at_least_one_connection_per_output():
    starved = Topology.from_pairs((4, 8), [0], [0])
    assert weight_scale(starved, "he") == np.sqrt(2)


def test_weights_are_the_same_on_any_number_of_threads():
    topology = Topology.full((500, 400))
    one, three = (first_weights(topology, seed=5, n_threads=n) for n in (1, 3))
    np.testing.assert_array_equal(one, three)
