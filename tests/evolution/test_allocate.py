"""Sharing new connections out among layers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ratoon.evolution.allocate import draw_shares, shares
from tests.evolution.dense import proportional

ROOM = st.lists(st.integers(0, 40), min_size=1, max_size=6)


@given(ROOM, st.integers(0, 250), st.data())
def test_everything_is_given_out_within_the_room(room, total, data):
    weights = data.draw(st.lists(st.floats(0, 1e6), min_size=len(room), max_size=len(room)))
    counts = shares(total, weights, room)
    assert counts.sum() == min(total, sum(room))
    assert (counts >= 0).all()
    assert (counts <= room).all()


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=6), st.integers(0, 90), st.data())
def test_shares_are_those_of_giving_one_at_a_time_to_who_lacks_most(weights, total, data):
    room = data.draw(st.lists(st.integers(15, 60), min_size=len(weights), max_size=len(weights)))
    total = min(total, sum(room))
    # Irrational weights, so that nobody ever lacks exactly as much as another.
    roots = np.sqrt(np.array(weights) + np.arange(len(weights)) / 7)
    assert_array_equal(shares(total, roots, room), proportional(total, roots, room))


def test_a_layer_without_claim_gets_something_only_when_the_others_are_full():
    assert_array_equal(shares(5, [1.0, 0.0], [10, 10]), [5, 0])
    assert_array_equal(shares(5, [1.0, 0.0], [3, 10]), [3, 2])


def test_numbers_that_are_none_count_as_no_claim():
    assert_array_equal(shares(4, [np.nan, 1.0], [10, 10]), [0, 4])
    assert_array_equal(shares(4, [0.0, 0.0], [30, 10]), [3, 1])


@given(ROOM, st.integers(0, 250), st.integers(0, 2**32))
def test_drawn_shares_are_within_the_room(room, total, seed):
    counts = draw_shares(total, room, np.random.default_rng(seed))
    assert counts.sum() == min(total, sum(room))
    assert (counts >= 0).all()
    assert (counts <= room).all()


def test_drawn_shares_are_those_of_drawing_without_replacement():
    room, total = np.array([50, 30, 20]), 40
    rng = np.random.default_rng(0)
    counts = np.array([draw_shares(total, room, rng) for _ in range(4000)])
    p = room / 100
    # The hypergeometric distribution: mean 40 p, variance 40 p (1 - p) * 60 / 99.
    deviation = np.sqrt(40 * p * (1 - p) * 60 / 99)
    assert (np.abs(counts.mean(axis=0) - 40 * p) < 5 * deviation / np.sqrt(4000)).all()
    # The spread of 4000 numbers strays by 1 / sqrt(8000) = 1.1 % of itself.
    np.testing.assert_allclose(counts.std(axis=0), deviation, rtol=0.056)
