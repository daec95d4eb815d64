"""Invalid topologies are refused, from every source."""

import pickle

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from ratoon.errors import InvalidInputError
from ratoon.topology import Topology
from tests.kernels.cases import cut
from tests.topology.checks import assert_valid

WIDEST = 2**31 - 1


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
def test_invalid_shapes_are_refused(shape):
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
def test_invalid_counts_are_refused(n_connections):
    with pytest.raises(InvalidInputError):
        Topology.random((3, 4), n_connections, seed=0)


@pytest.mark.parametrize("seed", [-1, 2**64, 0.5, None])
def test_seeds_must_be_64_bit_integers(seed):
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
def test_invalid_pairs_are_refused(inputs, outputs):
    with pytest.raises(InvalidInputError):
        Topology.from_pairs((3, 4), inputs, outputs)


@pytest.mark.parametrize("positions", [[-1], [12], [5, 5], [2**62], [2**64], [0.5]])
def test_invalid_positions_are_refused(positions):
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


def test_arrays_of_other_types_are_refused():
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
def test_any_change_of_one_stored_number_is_refused_or_gives_a_valid_topology(data):
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
def test_invalid_regrowths_are_refused(kept, count):
    topology = Topology.random((3, 4), 5, seed=0)
    with pytest.raises(InvalidInputError):
        topology.regrow(np.array(kept), count, seed=0)
