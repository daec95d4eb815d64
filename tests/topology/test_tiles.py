"""The order of connections in a tile, and how tiles cover a layer."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.kernels import reference
from ratoon.topology import Topology, suited_grid
from tests.kernels.cases import cut


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
def test_connections_of_a_tile_are_ordered_by_key(inputs, outputs, grouped):
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


@pytest.mark.parametrize("n_connections", [1, 3_000, 300_000, 30_000_000])
@pytest.mark.parametrize(
    "shape",
    [(19_993, 16_000), (11_340, 9_000), (600, 300), (3_072, 1_024), (9_000_000, 20_000_001)],
)
def test_tiles_split_evenly_over_two_four_and_eight_threads(shape, n_connections):
    grid = suited_grid(shape, n_connections)
    for n, side in zip(shape, (grid.tile_in, grid.tile_out), strict=True):
        n_tiles = -(-n // side)
        assert n_tiles in (1, 2, 4) or n_tiles % 8 == 0
        # None is a splinter: a tile of inputs is rounded up to 16, which the last one pays for.
        assert n - (n_tiles - 1) * side > side - 16 * n_tiles
