import copy
import itertools
import pickle
from math import comb

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ratoon.errors import InvalidInputError
from ratoon.kernels import reference
from ratoon.topology import GROWN, Rewiring, Topology
from tests.kernels.cases import THREADS, cut, topologies

WIDEST = 2**31 - 1


def assert_valid(topology, n_connections):
    """Check the count, the range, and that no connection is there twice."""
    inputs, outputs = topology.pairs()
    assert topology.n_connections == inputs.size == n_connections
    if n_connections > 0:
        assert inputs.min() >= 0
        assert outputs.min() >= 0
        assert inputs.max() < topology.shape[0]
        assert outputs.max() < topology.shape[1]
    assert np.unique(topology.positions).size == n_connections


# ---------------------------------------------------------------------------------- round trips


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
def test_stored_arrays_give_the_topology_back(topology):
    stored = (topology.shape, topology.tile, topology.grouped)
    arrays = (topology.starts.copy(), topology.packed.copy())
    again = Topology.checked(*stored, *arrays)
    assert again == topology
    assert hash(again) == hash(topology)
    for copied in (pickle.loads(pickle.dumps(topology)), copy.deepcopy(topology)):
        assert copied == topology
        assert copied.content_hash() == topology.content_hash()


@given(topology=topologies())
def test_a_scipy_matrix_of_any_format_gives_topology_and_values_back(topology):
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
def test_facts_agree_with_the_pairs(topology):
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


# ------------------------------------------------------------------------------- order of a tile


def order_of(inputs, outputs, grouped):
    """Positions of a tile in its order, by sorting."""
    everything = itertools.product(range(inputs), range(outputs))
    if grouped:
        return sorted(everything, key=lambda at: (at[0] // 16, at[1], at[0] % 16))
    return sorted(everything)


# 16 divides 16 and 48; after 1, 15, 17, 31 and 50 a narrower group is left.
@pytest.mark.parametrize("inputs", [1, 15, 16, 17, 31, 48, 50])
@pytest.mark.parametrize("outputs", [1, 2, 7, 33])
@pytest.mark.parametrize("grouped", [False, True])
def test_the_order_of_a_tile_is_that_of_its_key(inputs, outputs, grouped):
    expected = np.array(order_of(inputs, outputs, grouped))
    tile = reference.Tile(0, 0, inputs, outputs, grouped)
    assert_array_equal(tile.key(*expected.T), np.arange(inputs * outputs))
    assert_array_equal(np.transpose(tile.at(np.arange(inputs * outputs))), expected)

    shape = (inputs, outputs)
    full = cut(Topology.full(shape), (16 * (inputs // 16 + 1), outputs), grouped)
    assert_array_equal(np.transpose(full.pairs()), expected)
    # The same by way of ranks: native code finds the connection at every place of the order.
    drawn = full.regrow(np.array([], dtype=np.int64), inputs * outputs, seed=0).topology
    assert drawn == full


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    ("n_in", "n_out"), [(65536, 65536), (65521, 65535), (65536, 1), (65535, 3)]
)
def test_the_largest_tiles_are_ordered_without_overflow(n_in, n_out, grouped):
    area = n_in * n_out
    keys = np.unique(
        np.concatenate(([0, 1, area - 1], np.random.default_rng(0).integers(area, size=2000)))
    )
    tile = reference.Tile(0, 0, n_in, n_out, grouped)
    inputs, outputs = tile.at(keys)
    assert_array_equal(tile.key(inputs, outputs), keys)

    shape = (n_in, n_out)
    packed, starts = tile.pack(keys), np.array([0, keys.size])
    stored = Topology.checked(shape, (65536, n_out), grouped, starts, packed)
    assert_array_equal(np.transpose(stored.pairs()), np.transpose((inputs, outputs)))
    assert cut(stored, (65536, n_out), grouped) == stored


@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (100, 40), (5000, 3000), (70_000, 66_000)])
def test_tiles_cover_the_layer_once(shape):
    topology = Topology.random(shape, min(1000, shape[0] * shape[1]), seed=0)
    tiles = list(reference.tiles_of(shape, topology.tile, topology.grouped))
    assert sum(tile.area for tile in tiles) == shape[0] * shape[1]
    assert len(topology.starts) == len(tiles) + 1


# ---------------------------------------------------------------------------------- random starts


@given(topology=topologies(), seed=st.integers(0, 2**64 - 1))
def test_a_random_start_is_that_of_its_twin(topology, seed):
    shape, n = topology.shape, topology.n_connections
    ours = Topology.random(shape, n, seed=seed)
    assert ours == reference.random_topology(shape, ours.tile, ours.grouped, n, seed=seed)
    assert_valid(ours, n)


@pytest.mark.parametrize("density", [0.9, 0.99, 1 - 1e-6, 1.0])
@pytest.mark.parametrize("shape", [(16_000, 2), (400, 300), (1, 100_000), (100_000, 1)])
def test_the_count_is_exact_however_full_the_layer(shape, density):
    n = round(density * shape[0] * shape[1])
    assert_valid(Topology.random(shape, n, seed=3), n)


def test_threads_and_time_change_nothing_and_the_seed_does():
    same = {Topology.random((4000, 3000), 300_000, seed=5, n_threads=n) for n in THREADS}
    assert len(same) == 1
    assert Topology.random((4000, 3000), 300_000, seed=6) not in same
    full = [Topology.random((400, 300), 119_000, seed=5, n_threads=n) for n in THREADS]
    assert len(set(full)) == 1


def assert_uniform(drawn, n_outcomes):
    """Check by chi-square that outcomes are equally likely.

    Its mean is the number of degrees of freedom f and its deviation sqrt(2 f); five deviations
    are exceeded with a probability below 1e-5 for the f used here.
    """
    _, counts = np.unique(drawn, return_counts=True)
    assert counts.size == n_outcomes, "every outcome comes up"
    expected = len(drawn) / n_outcomes
    chi_square = ((counts - expected) ** 2 / expected).sum()
    freedom = n_outcomes - 1
    assert abs(chi_square - freedom) < 5 * np.sqrt(2 * freedom)


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
def test_regrowing_is_that_of_its_twin(topology, data):
    n = topology.n_connections
    seed = data.draw(st.integers(0, 2**64 - 1))
    survives = np.random.default_rng(seed).random(n) < data.draw(st.sampled_from([0, 0.3, 0.7, 1]))
    kept = np.flatnonzero(survives)
    room = topology.n_positions - kept.size
    count = data.draw(st.one_of(st.sampled_from([0, room]), st.integers(0, room)))

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
def test_regrowing_large_layers_is_that_of_its_twin_on_any_number_of_threads(shape):
    topology = Topology.random(shape, 30_000, seed=1)
    kept = np.flatnonzero(np.random.default_rng(0).random(30_000) < 0.7)
    twin = reference.regrow(topology, kept, 9_000, seed=2)
    for n_threads in THREADS:
        ours = topology.regrow(kept, 9_000, seed=2, n_threads=n_threads)
        assert ours.topology == twin.topology
        assert_array_equal(ours.origin, twin.origin)


def test_carrying_moves_values_to_where_their_connections_went():
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


# --------------------------------------------------------------------------------------- refusals

LARGE_INTEGERS = [2**31, 2**32, 2**62, 2**63, 2**64]


@pytest.mark.parametrize(
    "shape",
    [
        (0, 3),
        (3, 0),
        (-1, 3),
        (3,),
        (3, 4, 5),
        (2.5, 3),
        ("3", 4),
        (None, 3),
        (np.nan, 3),
        *((n, 3) for n in LARGE_INTEGERS),
        *((3, n) for n in LARGE_INTEGERS),
        # 2^30 tiles: their starts alone would take 8 GB.
        (WIDEST, WIDEST),
    ],
)
def test_impossible_shapes_are_refused(shape):
    arrays = (np.zeros(2, np.int64), np.zeros(0, np.uint32))
    for make in (
        lambda: Topology.random(shape, 1, seed=0),
        lambda: Topology.from_pairs(shape, [0], [0]),
        lambda: Topology.from_positions(shape, [0]),
        lambda: Topology.checked(shape, (16, 1), True, *arrays),
    ):
        with pytest.raises(InvalidInputError):
            make()


@pytest.mark.parametrize("n_connections", [-1, 13, 2**63, 2**64, 1.5, None, "3"])
def test_impossible_counts_are_refused(n_connections):
    with pytest.raises(InvalidInputError):
        Topology.random((3, 4), n_connections, seed=0)


@pytest.mark.parametrize("seed", [-1, 2**64, 0.5, None])
def test_seeds_are_64_bit_integers(seed):
    with pytest.raises(InvalidInputError):
        Topology.random((3, 4), 2, seed=seed)
    with pytest.raises(InvalidInputError):
        Topology.full((3, 4)).regrow(np.array([0]), 1, seed=seed)


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ([3], [0]),
        ([0], [4]),
        ([-1], [0]),
        ([0], [-1]),
        ([0, 0], [1, 1]),
        ([2, 0, 2], [3, 1, 3]),
        ([0, 1], [0]),
        ([0.5], [1]),
        ([1.0], [1]),
        ([np.nan], [1]),
        (["1"], [1]),
        ([True], [1]),
        ([None], [1]),
        ([2**62], [0]),
        ([2**64], [0]),
        (np.array([2**64 - 1], dtype=np.uint64), [0]),
    ],
)
def test_impossible_pairs_are_refused(inputs, outputs):
    with pytest.raises(InvalidInputError):
        Topology.from_pairs((3, 4), inputs, outputs)


@pytest.mark.parametrize("positions", [[-1], [12], [5, 5], [2**62], [2**64], [0.5]])
def test_impossible_positions_are_refused(positions):
    with pytest.raises(InvalidInputError):
        Topology.from_positions((3, 4), positions)


def test_a_scipy_matrix_with_an_entry_twice_is_refused():
    with pytest.raises(InvalidInputError, match="twice"):
        Topology.from_scipy(scipy.sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(3, 4)))


def damaged_arrays():
    """Return stored arrays of a 40 -> 5 layer, each damaged in its own way."""
    topology = cut(Topology.random((40, 5), 60, seed=0), (16, 3), True)
    starts, packed = topology.starts.copy(), topology.packed.copy()

    def stored(**changed):
        usual = {"shape": (40, 5), "tile": (16, 3), "grouped": True}
        return usual | {"starts": starts, "packed": packed} | changed

    def with_entry(array, at, value):
        changed = array.copy()
        changed[at] = value
        return changed

    swapped = packed.copy()
    swapped[[1, 2]] = swapped[[2, 1]]
    return {
        "another shape": stored(shape=(41, 7)),
        "a smaller shape": stored(shape=(39, 5)),
        "another tile": stored(tile=(16, 2)),
        "a tile of nothing": stored(tile=(0, 3)),
        "a tile not of 16": stored(tile=(8, 3)),
        "a tile too wide": stored(tile=(65552, 3)),
        "a tile too deep": stored(tile=(16, 65537)),
        "negative tile": stored(tile=(-16, 3)),
        "tile of one number": stored(tile=(16,)),
        "other order": stored(grouped=False),
        "grouped is no truth value": stored(grouped="yes"),
        "first start not 0": stored(starts=with_entry(starts, 0, 1)),
        "last start too low": stored(starts=with_entry(starts, -1, 59)),
        "last start too high": stored(starts=with_entry(starts, -1, 61)),
        "a start beyond": stored(starts=with_entry(starts, 1, 2**40)),
        "a negative start": stored(starts=with_entry(starts, 1, -3)),
        "starts that fall": stored(starts=with_entry(starts, 2, starts[1] - 1)),
        "a start moved": stored(starts=with_entry(starts, 2, starts[2] + 1)),
        "too few starts": stored(starts=starts[:-1].copy()),
        "no starts": stored(starts=np.zeros(0, np.int64)),
        "too many starts": stored(starts=np.append(starts, 60)),
        "starts of 32 bits": stored(starts=starts.astype(np.int32)),
        "starts of floats": stored(starts=starts.astype(np.float64)),
        "an input outside its tile": stored(packed=with_entry(packed, 3, 16 << 16)),
        "an output outside its tile": stored(packed=with_entry(packed, 3, 3)),
        "all bits set": stored(packed=with_entry(packed, 3, 2**32 - 1)),
        "a duplicate": stored(packed=with_entry(packed, 1, packed[0])),
        "unsorted": stored(packed=swapped),
        "too few connections": stored(packed=packed[:-1].copy()),
        "packed of 64 bits": stored(packed=packed.astype(np.uint64)),
        "packed with a sign": stored(packed=packed.astype(np.int32)),
        "packed in two dimensions": stored(packed=packed.reshape(2, 30)),
        "packed as a list": stored(packed=packed.tolist()),
        "nothing at all": stored(packed=None),
    }


@pytest.mark.parametrize("damaged", damaged_arrays().values(), ids=damaged_arrays().keys())
def test_damaged_arrays_are_refused_from_storage_and_from_pickles(damaged):
    with pytest.raises(InvalidInputError, match="not a valid topology"):
        Topology.checked(**damaged)

    class Forged:
        def __reduce__(self):
            return Topology.checked, tuple(damaged.values())

    with pytest.raises(InvalidInputError, match="not a valid topology"):
        pickle.loads(pickle.dumps(Forged()))


def test_arrays_that_would_have_to_be_converted_are_refused():
    topology = Topology.random((50, 40), 100, seed=0)
    starts, packed = topology.starts.copy(), topology.packed.copy()
    for wrong in (
        (np.repeat(starts, 2)[::2], packed),
        (starts, np.repeat(packed, 2)[::2]),
        (starts, packed.astype(">u4")),
    ):
        with pytest.raises(InvalidInputError):
            Topology.checked(topology.shape, topology.tile, topology.grouped, *wrong)


@given(data=st.data())
def test_any_single_change_of_stored_numbers_gives_another_valid_topology_or_is_refused(data):
    topology = cut(Topology.random((40, 5), 60, seed=0), (16, 3), True)
    starts, packed = topology.starts.copy(), topology.packed.copy()
    array = data.draw(st.sampled_from([starts, packed]))
    at = data.draw(st.integers(0, array.size - 1))
    bit = data.draw(st.integers(0, 8 * array.itemsize - 2))
    array[at] ^= array.dtype.type(1 << bit)
    try:
        changed = Topology.checked(topology.shape, topology.tile, True, starts, packed)
    except InvalidInputError:
        return
    assert changed != topology
    assert changed.content_hash() != topology.content_hash()
    assert_valid(changed, 60)


@pytest.mark.parametrize(
    ("kept", "count"),
    [
        ([2, 1], 0),
        ([1, 1], 0),
        ([-1], 0),
        ([5], 0),
        ([2**62], 0),
        ([0.0], 1),
        ([0], -1),
        ([0], 12),
        ([0, 1, 2, 3, 4], 8),
        ([0], 2**62),
        ([0], 1.5),
    ],
)
def test_impossible_regrowths_are_refused(kept, count):
    topology = Topology.random((3, 4), 5, seed=0)
    with pytest.raises(InvalidInputError):
        topology.regrow(np.array(kept), count, seed=0)


# ------------------------------------------------------------------------------------ immutability


@pytest.mark.parametrize("name", ["starts", "packed"])
def test_arrays_of_a_topology_are_read_only_for_good(name):
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


def test_a_topology_does_not_follow_the_arrays_it_was_made_from():
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


def test_the_hash_tells_connections_shape_and_tiles_apart():
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


def test_its_name_tells_shape_count_and_density():
    assert repr(Topology.full((3, 2))) == "Topology(3 -> 2, 6 connections, density 1)"
