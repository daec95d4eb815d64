"""A topology as pairs, positions, stored arrays and SciPy matrices; its properties and hash."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from numpy.testing import assert_array_equal

from ratoon.topology import Topology
from tests.kernels.cases import cut, topologies
from tests.topology.checks import assert_valid

WIDEST = 2**31 - 1


@given(topology=topologies())
def test_pairs_and_positions_in_any_order_give_the_same_topology(topology):
    rng = np.random.default_rng(0)
    usual = Topology.from_pairs(topology.shape, *topology.pairs())
    shuffled = rng.permutation(topology.n_connections)
    inputs, outputs = topology.pairs()

    other, order = Topology.from_pairs_with_order(
        topology.shape, inputs[shuffled], outputs[shuffled]
    )
    assert other == usual
    assert_array_equal(inputs[shuffled][order], usual.rows)
    assert_array_equal(outputs[shuffled][order], usual.columns)
    assert Topology.from_positions(topology.shape, topology.positions[shuffled]) == usual


@given(topology=topologies())
def test_a_topology_can_be_rebuilt_from_its_stored_arrays(topology):
    stored = (topology.shape, topology.tile, topology.grouped)
    arrays = (topology.starts.copy(), topology.packed.copy())
    again = Topology.checked(*stored, *arrays)
    assert again == topology
    assert hash(again) == hash(topology)
    for copied in (pickle.loads(pickle.dumps(topology)), copy.deepcopy(topology)):
        assert copied == topology
        assert copied.content_hash() == topology.content_hash()


@given(topology=topologies())
def test_a_scipy_matrix_of_any_format_round_trips(topology):
    values = np.arange(1.0, topology.n_connections + 1)
    matrix = topology.to_csr(values)
    assert matrix.shape == topology.shape
    for form in ("csr", "csc", "coo", "lil"):
        again, carried = Topology.from_scipy(matrix.asformat(form))
        assert again == Topology.from_pairs(topology.shape, *topology.pairs())
        assert_array_equal(again.to_csr(carried).toarray(), matrix.toarray())


def test_a_stored_zero_is_a_connection():
    topology, values = Topology.from_scipy(scipy.sparse.csr_array(([0.0], ([1], [2])), (3, 4)))
    assert topology.positions.tolist() == [6]
    assert values.tolist() == [0.0]


@given(topology=topologies())
def test_properties_agree_with_the_pairs(topology):
    inputs, outputs = topology.pairs()
    n_in, n_out = topology.shape
    of_inputs, of_outputs = topology.degrees()
    assert_array_equal(of_inputs, np.bincount(inputs, minlength=n_in))
    assert_array_equal(of_outputs, np.bincount(outputs, minlength=n_out))
    assert topology.n_positions == n_in * n_out
    assert topology.density == topology.n_connections / (n_in * n_out)
    assert topology.is_full == (topology.n_connections == n_in * n_out)
    assert_array_equal(topology.to_csr().toarray().sum(axis=0), of_outputs)


def test_positions_need_64_bits():
    corner = Topology.from_pairs((WIDEST, 3), [WIDEST - 1, 0], [2, 0])
    assert corner.positions.tolist() == [0, 3 * WIDEST - 1]
    assert Topology.from_positions((WIDEST, 3), corner.positions) == corner

    wide = Topology.random((200_000, 200_000), 5000, seed=1)
    assert_valid(wide, 5000)
    assert wide.positions.max() > 2**32
    assert Topology.from_positions(wide.shape, wide.positions) == wide
    # All of the plane is reached: the mean of n uniform numbers has deviation 1 / sqrt(12 n).
    mean = wide.positions.mean() / wide.n_positions
    assert abs(mean - 0.5) < 5 / np.sqrt(12 * 5000)


@pytest.mark.parametrize("name", ["starts", "packed"])
def test_arrays_of_a_topology_cannot_be_made_writable(name):
    topology = Topology.random((50, 40), 100, seed=0)
    before = topology.content_hash()
    for array in (getattr(topology, name), getattr(topology, name).view()):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
        assert memoryview(array).readonly
        assert not np.frombuffer(array.base, dtype=np.uint8).flags.writeable
    with pytest.raises(AttributeError):
        setattr(topology, name, None)
    assert topology.content_hash() == before


def test_a_topology_copies_the_arrays_it_is_built_from():
    topology = Topology.random((50, 40), 100, seed=0)
    starts, packed = topology.starts.copy(), topology.packed.copy()
    made = Topology.checked(topology.shape, topology.tile, topology.grouped, starts, packed)
    starts[:], packed[:] = 7, 7
    assert made == topology


def test_arrays_outlive_their_topology():
    packed = Topology.random((50, 40), 100, seed=0).packed
    filler = [Topology.random((50, 40), 100, seed=seed).packed for seed in range(1, 20)]
    assert_array_equal(packed, Topology.random((50, 40), 100, seed=0).packed)
    assert len(filler) == 19


def test_the_hash_depends_on_connections_shape_and_tiles():
    topology = Topology.from_pairs((20, 3), [0, 5], [1, 2])
    others = [
        Topology.from_pairs((20, 3), [0, 5], [1, 1]),
        Topology.from_pairs((20, 3), [0], [1]),
        Topology.from_pairs((21, 3), [0, 5], [1, 2]),
        Topology.from_pairs((20, 4), [0, 5], [1, 2]),
        cut(topology, (16, 3), True),
        cut(topology, topology.tile, not topology.grouped),
    ]
    assert len({other.content_hash() for other in (topology, *others)}) == 7
    assert all(other != topology for other in others)
    assert topology != "topology"
    # Written down once: a hash that changed would make every stored one useless.
    assert topology.content_hash().startswith("eb65a247447f1f50")


def test_the_repr_shows_shape_count_and_density():
    assert repr(Topology.full((3, 2))) == "Topology(3 -> 2, 6 connections, density 1)"
