"""Dividing new connections among layers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ratoon.evolution.allocate import draw_split, split_in_proportion
from tests.evolution.dense import proportional

LIMITS = st.lists(st.integers(0, 40), min_size=1, max_size=6)


@given(LIMITS, st.integers(0, 250), st.data())
def test_the_parts_add_up_to_the_total_within_the_limits(limits, total, data):
    weights = data.draw(st.lists(st.floats(0, 1e6), min_size=len(limits), max_size=len(limits)))
    counts = split_in_proportion(total, weights, limits)
    assert counts.sum() == min(total, sum(limits))
    assert (counts >= 0).all()
    assert (counts <= limits).all()


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=6), st.integers(0, 90), st.data())
def test_the_split_equals_assigning_one_at_a_time_to_the_largest_deficit(weights, total, data):
    limits = data.draw(st.lists(st.integers(15, 60), min_size=len(weights), max_size=len(weights)))
    total = min(total, sum(limits))
    # Irrational weights, so that two deficits are never equal.
    roots = np.sqrt(np.array(weights) + np.arange(len(weights)) / 7)
    assert_array_equal(
        split_in_proportion(total, roots, limits), proportional(total, roots, limits)
    )


def test_a_weight_of_zero_gets_a_part_only_if_the_others_are_full():
    assert_array_equal(split_in_proportion(5, [1.0, 0.0], [10, 10]), [5, 0])
    assert_array_equal(split_in_proportion(5, [1.0, 0.0], [3, 10]), [3, 2])


def test_nan_weights_count_as_zero():
    assert_array_equal(split_in_proportion(4, [np.nan, 1.0], [10, 10]), [0, 4])
    assert_array_equal(split_in_proportion(4, [0.0, 0.0], [30, 10]), [3, 1])


@given(LIMITS, st.integers(0, 250), st.integers(0, 2**32))
def test_a_drawn_split_is_within_the_available_positions(limits, total, seed):
    counts = draw_split(total, limits, np.random.default_rng(seed))
    assert counts.sum() == min(total, sum(limits))
    assert (counts >= 0).all()
    assert (counts <= limits).all()


def test_a_drawn_split_has_the_distribution_of_drawing_without_replacement():
    limits, total = np.array([50, 30, 20]), 40
    rng = np.random.default_rng(0)
    counts = np.array([draw_split(total, limits, rng) for _ in range(4000)])
    p = limits / 100
    # The hypergeometric distribution: mean 40 p, variance 40 p (1 - p) * 60 / 99.
    deviation = np.sqrt(40 * p * (1 - p) * 60 / 99)
    assert (np.abs(counts.mean(axis=0) - 40 * p) < 5 * deviation / np.sqrt(4000)).all()
    # The spread of 4000 numbers strays by 1 / sqrt(8000) = 1.1 % of itself.
    np.testing.assert_allclose(counts.std(axis=0), deviation, rtol=0.056)
