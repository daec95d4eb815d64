"""Random starts and regrown connections: equal to the reference, and uniformly distributed."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ratoon.kernels import reference
from ratoon.topology import GROWN, Rewiring, Topology
from tests.kernels.cases import THREADS, cut, topologies
from tests.topology.checks import assert_uniform, assert_valid


@given(topology=topologies(), seed=st.integers(0, 2**64 - 1))
def test_a_random_start_equals_the_reference(topology, seed):
    shape, n = topology.shape, topology.n_connections
    ours = Topology.random(shape, n, seed=seed)
    assert ours == reference.random_topology(shape, ours.tile, ours.grouped, n, seed=seed)
    assert_valid(ours, n)


@pytest.mark.parametrize("density", [0.9, 0.99, 1 - 1e-6, 1.0])
@pytest.mark.parametrize("shape", [(16_000, 2), (400, 300), (1, 100_000), (100_000, 1)])
def test_the_count_is_exact_at_any_density(shape, density):
    n = round(density * shape[0] * shape[1])
    assert_valid(Topology.random(shape, n, seed=3), n)


def test_only_the_seed_changes_a_random_start():
    same = {Topology.random((4000, 3000), 300_000, seed=5, n_threads=n) for n in THREADS}
    assert len(same) == 1
    assert Topology.random((4000, 3000), 300_000, seed=6) not in same
    full = [Topology.random((400, 300), 119_000, seed=5, n_threads=n) for n in THREADS]
    assert len(set(full)) == 1


# Below half the connections are drawn, above it the positions left out.
@pytest.mark.parametrize("n_connections", [1, 3, 4, 6, 8])
def test_every_set_of_connections_is_equally_likely_at_the_start(n_connections):
    sets = [
        (1 << Topology.random((3, 3), n_connections, seed=seed).positions).sum()
        for seed in range(9000)
    ]
    assert_uniform(sets, comb(9, n_connections))


@pytest.mark.parametrize("count", [1, 3, 5])
@pytest.mark.parametrize("grouped", [False, True])
def test_every_set_of_empty_positions_is_equally_likely_to_grow(count, grouped):
    # 33 -> 2 in tiles of 16 x 1: six tiles, the last of each row narrow.  All but seven positions
    # are taken, by connections that stay; one more connection goes and its place is free again.
    stays = np.random.default_rng(0).permutation(66)[:59]
    goes = np.setdiff1d(np.arange(66), stays)[0]
    topology = cut(Topology.from_positions((33, 2), np.append(stays, goes)), (16, 1), grouped)
    kept = np.flatnonzero(topology.positions != goes)
    sets = []
    for seed in range(6000):
        grown = topology.regrow(kept, count, seed=seed)
        sets.append((1 << grown.topology.positions[grown.is_grown].astype(object)).sum())
    places = np.unique(sets, return_inverse=True)[1]
    assert_uniform(places, comb(7, count))


# -------------------------------------------------------------------------------------- regrowing


@given(topology=topologies(max_in=60, max_out=50), data=st.data())
def test_regrowing_equals_the_reference(topology, data):
    n = topology.n_connections
    seed = data.draw(st.integers(0, 2**64 - 1))
    survives = np.random.default_rng(seed).random(n) < data.draw(st.sampled_from([0, 0.3, 0.7, 1]))
    kept = np.flatnonzero(survives)
    n_empty = topology.n_positions - kept.size
    count = data.draw(st.one_of(st.sampled_from([0, n_empty]), st.integers(0, n_empty)))

    ours = topology.regrow(kept, count, seed=seed)
    twin = reference.regrow(topology, kept, count, seed=seed)

    assert ours.topology == twin.topology
    assert_array_equal(ours.origin, twin.origin)
    assert_valid(ours.topology, kept.size + count)
    assert ours.n_grown == count
    assert_array_equal(ours.origin[~ours.is_grown], kept)
    old, new = topology.positions, ours.topology.positions
    assert_array_equal(new[~ours.is_grown], old[kept])


@pytest.mark.parametrize("shape", [(5000, 3000), (70_000, 66_000)])
def test_regrowing_large_layers_equals_the_reference_on_any_number_of_threads(shape):
    topology = Topology.random(shape, 30_000, seed=1)
    kept = np.flatnonzero(np.random.default_rng(0).random(30_000) < 0.7)
    twin = reference.regrow(topology, kept, 9_000, seed=2)
    for n_threads in THREADS:
        ours = topology.regrow(kept, 9_000, seed=2, n_threads=n_threads)
        assert ours.topology == twin.topology
        assert_array_equal(ours.origin, twin.origin)


def test_carried_values_follow_their_connections():
    topology = Topology.from_pairs((3, 2), [0, 0, 2], [0, 1, 1])
    rewiring = Rewiring.between(topology, kept=np.array([0, 2]), grown=np.array([2]))
    values = topology.positions * 10.0
    carried = rewiring.carry(values, grown=-5.0)
    expected = np.where(rewiring.is_grown, -5.0, rewiring.topology.positions * 10.0)
    assert_array_equal(carried, expected)
    assert_array_equal(Rewiring.unchanged(topology).carry(values), values)
    assert_array_equal(rewiring.carry_weights(values), rewiring.carry(values, grown=0.0))
    with_weights = Rewiring(rewiring.topology, rewiring.origin, np.array([0.25]))
    assert_array_equal(with_weights.carry_weights(values), rewiring.carry(values, grown=0.25))
    assert (rewiring.origin == GROWN).sum() == rewiring.n_grown == 1
