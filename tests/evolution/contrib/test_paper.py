"""Implementations I and II of the paper and SET: same invariants, same distribution."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from ratoon.evolution import SET, LayerState
from ratoon.evolution.contrib import paper
from ratoon.topology import Topology
from tests.evolution.cases import CLOCK

SIGMA = 0.1


def rewire_natively(weights, zeta, seed):
    topology, values = Topology.from_scipy(weights)
    layer = LayerState(topology, values, init="set")
    [rewiring] = SET(zeta).rewire([layer], CLOCK, seed)
    return rewiring.topology.to_csr(rewiring.carry_weights(values))


def rewire_by_paper(function, weights, zeta, seed):
    return function(weights, zeta, np.random.default_rng(seed), sigma=SIGMA)


IMPLEMENTATIONS = {
    "I": partial(rewire_by_paper, paper.rewire_one_by_one),
    "II": partial(rewire_by_paper, paper.rewire_vectorised),
    "native": rewire_natively,
}


def matrix(shape, n_connections, seed=0):
    topology = Topology.random(shape, n_connections, seed=seed)
    # Away from 0, so that new weights (of scale 0.1) differ from old ones in size.
    values = np.random.default_rng(seed).uniform(1, 2, n_connections)
    return topology.to_csr(values * np.where(np.arange(n_connections) % 3, 1.0, -1.0))


@pytest.fixture(params=IMPLEMENTATIONS)
def rewire(request):
    return IMPLEMENTATIONS[request.param]


@pytest.mark.parametrize("zeta", [0.0, 0.3, 0.99])
@pytest.mark.parametrize(("shape", "count"), [((40, 30), 200), ((1, 9), 4), ((5, 5), 24)])
def test_the_number_of_connections_does_not_change(rewire, shape, count, zeta):
    after = rewire(matrix(shape, count), zeta, 0)
    after.sum_duplicates()
    assert after.nnz == count


def test_the_weakest_of_each_sign_are_pruned_and_the_others_keep_their_weights(rewire):
    before = matrix((40, 30), 200)
    after = rewire(before, 0.3, 0)

    values = np.sort(before.data)
    negative, positive = values[values < 0], values[values >= 0]
    n_negative, n_positive = round(0.3 * negative.size), round(0.3 * positive.size)
    survivors = np.concatenate((negative[: negative.size - n_negative], positive[n_positive:]))
    old = np.abs(after.data) > 1.0
    assert_array_equal(np.sort(after.data[old]), survivors)
    old_matrix = scipy.sparse.csr_array(after * (abs(after) > 1.0))
    assert abs(old_matrix - before.multiply(old_matrix != 0)).max() == 0, "and their places"


def test_a_weight_of_zero_is_a_connection_like_any_other(rewire):
    before = scipy.sparse.csr_array([[0.5, -1.0, 2.0], [0, 3.0, -4.0]])
    before.data[0] = 0.0  # stored, and 0
    after = rewire(before, 0.4, 1)
    assert after.nnz == 5
    assert np.count_nonzero(np.isin(after.data, [2.0, 3.0, -4.0])) == 3


def test_every_empty_position_is_equally_likely(rewire):
    before = matrix((6, 8), 12)
    n_runs = 1000
    counts = np.zeros(before.shape)
    for seed in range(n_runs):
        after = rewire(before, 0.5, seed).toarray()
        counts += (after != 0) & (np.abs(after) < 1.0)
    # Of the 12, 2 negative and 4 positive go; so 6 of 42 empty places are drawn each time.
    survivor = counts == 0
    assert survivor.sum() == 6
    expected, deviation = n_runs * 6 / 42, np.sqrt(n_runs * 6 / 42 * (1 - 6 / 42))
    # 42 positions, 3 implementations: random results exceed five deviations once in 14,000 runs.
    assert np.abs(counts[~survivor] - expected).max() < 5 * deviation


def test_new_weights_have_the_spread_of_initial_weights(rewire):
    after = rewire(matrix((200, 100), 6000), 0.5, 0)
    grown = after.data[np.abs(after.data) < 1.0]
    assert grown.size == 3000
    # The mean of 3000 deviates strays by 0.1 / sqrt(3000) = 0.0018, their spread by 0.0013.
    assert abs(grown.mean()) < 5 * 0.0018
    assert abs(grown.std() - SIGMA) < 5 * 0.0013
