"""The search for large absent gradients, and growth at given positions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from ratoon.kernels import available_isas, use_isa
from ratoon.kernels.absent import (
    empty_among,
    grow_at,
    laid_out,
    largest_absent,
    largest_absent_per_output,
    slots_of,
)
from ratoon.topology import GROWN, Rewiring, Topology
from tests.evolution.cases import positions_of


def dense_largest(topology, kept, x, d, count):
    """Return the same from the whole product; integers in x and d make it exact."""
    scores = np.abs(x @ d.T).ravel()
    scores[topology.positions[kept]] = 0
    order = np.argsort(-scores, kind="stable")[:count]
    return np.sort(order[scores[order] > 0])


def dense_largest_per_output(topology, kept, x, d, counts):
    """Return the same from the whole product; integers in x and d make it exact."""
    scores = np.abs(x @ d.T)
    scores[np.unravel_index(topology.positions[kept], scores.shape)] = 0
    found = []
    for j, count in enumerate(counts):
        order = np.argsort(-scores[:, j], kind="stable")[:count]
        found += [i * d.shape[0] + j for i in order[scores[order, j] > 0]]
    return np.sort(np.array(found, dtype=np.int64))


@st.composite
def searches(draw):
    n_in, n_out = draw(st.integers(1, 60)), draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_connections = draw(st.integers(0, n_in * n_out))
    topology = Topology.random((n_in, n_out), n_connections, seed=int(rng.integers(2**32)))
    kept = np.flatnonzero(rng.random(n_connections) < draw(st.sampled_from([0.0, 0.6, 1.0])))
    depth = draw(st.integers(1, 20))
    # Small integers: products are exact in any order of addition, and full of ties.
    largest = draw(st.sampled_from([1, 3, 100]))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    x = rng.integers(-largest, largest + 1, size=(n_in, depth)).astype(dtype)
    d = rng.integers(-largest, largest + 1, size=(n_out, depth)).astype(dtype)
    return topology, kept, x, d, draw(st.integers(0, n_in * n_out + 5))


@given(searches(), st.integers(1, 3))
def test_the_search_equals_a_sort_of_the_dense_gradient(search, n_threads):
    topology, kept, x, d, count = search
    found = largest_absent(topology, kept, x, d, count, n_threads=n_threads)
    assert_array_equal(found, dense_largest(topology, kept, x, d, count))


@given(searches(), st.integers(1, 3), st.integers(0, 2**32))
def test_the_search_per_output_equals_a_sort_of_every_column(search, n_threads, seed):
    topology, kept, x, d, _ = search
    counts = np.random.default_rng(seed).integers(0, x.shape[0] + 3, size=d.shape[0])
    found = largest_absent_per_output(topology, kept, x, d, counts, n_threads=n_threads)
    assert_array_equal(found, dense_largest_per_output(topology, kept, x, d, counts))


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("depth", [1, 5, 40])
def test_large_layers_agree_per_output_on_every_instruction_set(isa, depth):
    rng = np.random.default_rng(depth)
    topology = Topology.random((1500, 1100), 8000, seed=1)
    kept = np.arange(0, 8000, 2)
    x = rng.integers(-99, 100, size=(1500, depth)).astype(np.float32)
    d = rng.integers(-99, 100, size=(1100, depth)).astype(np.float32)
    x[rng.random(1500) < 0.3] = 0
    d *= rng.integers(0, 4, size=(1100, 1))  # so that norms differ, and some are 0
    counts = rng.integers(0, 9, size=1100)
    counts[:5] = [0, 1, 2000, 700, 10**15]
    use_isa(isa)
    try:
        found = largest_absent_per_output(topology, kept, x, d, counts, n_threads=2)
    finally:
        use_isa("auto")
    assert_array_equal(found, dense_largest_per_output(topology, kept, x, d, counts))


def test_equal_gradients_give_the_lowest_inputs_of_every_output():
    topology = Topology.from_pairs((3000, 50), [1], [7])
    ones = np.ones((3000, 1), dtype=np.float32), np.ones((50, 1), dtype=np.float32)
    found = largest_absent_per_output(topology, np.arange(1), *ones, np.full(50, 2))
    expected = list(range(50)) + [50 + j for j in range(50) if j != 7] + [107]
    assert_array_equal(found, np.sort(expected))


def test_nan_gradients_are_never_chosen_for_an_output():
    topology = Topology.random((4, 4), 0, seed=0)
    x, d = np.ones((4, 2)), np.ones((4, 2))
    x[1, 0] = d[2, 1] = np.nan
    found = largest_absent_per_output(topology, np.arange(0), x, d, np.full(4, 4))
    assert_array_equal(found, [0, 1, 3, 8, 9, 11, 12, 13, 15])


@pytest.mark.parametrize("wrong", ["rows", "columns", "kept", "counts", "negative"])
def test_arrays_of_inconsistent_sizes_are_refused_per_output(wrong):
    topology = Topology.random((5, 4), 6, seed=0)
    x, d, kept, counts = np.ones((5, 2)), np.ones((4, 2)), np.arange(6), np.ones(4, dtype=int)
    if wrong == "rows":
        d = d[:3]
    if wrong == "columns":
        d = d[:, :1]
    if wrong == "kept":
        kept = kept + 1
    if wrong == "counts":
        counts = counts[:3]
    if wrong == "negative":
        counts[1] = -1
    with pytest.raises(ValueError):
        largest_absent_per_output(topology, kept, x, d, counts)


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("depth", [1, 5, 40])
def test_large_layers_agree_with_the_dense_gradient_on_every_instruction_set(isa, depth):
    rng = np.random.default_rng(depth)
    topology = Topology.random((1500, 1100), 8000, seed=1)
    kept = np.arange(0, 8000, 2)
    x = rng.integers(-99, 100, size=(1500, depth)).astype(np.float32)
    d = rng.integers(-99, 100, size=(1100, depth)).astype(np.float32)
    x[rng.random(1500) < 0.3] = 0
    use_isa(isa)
    try:
        found = largest_absent(topology, kept, x, d, 4000, n_threads=2)
    finally:
        use_isa("auto")
    assert_array_equal(found, dense_largest(topology, kept, x, d, 4000))


def test_equal_gradients_everywhere_give_the_lowest_positions_in_bounded_memory():
    topology = Topology.random((3000, 2000), 0, seed=0)
    ones = np.ones((3000, 1), dtype=np.float32), np.ones((2000, 1), dtype=np.float32)
    found = largest_absent(topology, np.arange(0), *ones, 1000)
    assert_array_equal(found, np.arange(1000))


def test_positions_without_a_gradient_are_not_returned():
    topology = Topology.from_pairs((3, 2), [0], [0])
    x, d = np.array([[1.0], [0.0], [2.0]]), np.array([[1.0], [0.0]])
    assert_array_equal(largest_absent(topology, np.array([0]), x, d, 6), [4])
    assert_array_equal(largest_absent(topology, np.arange(0), x, d, 6), [0, 4])


def test_nan_gradients_are_never_chosen():
    topology = Topology.random((4, 4), 0, seed=0)
    x, d = np.ones((4, 2)), np.ones((4, 2))
    x[1, 0] = np.nan
    assert_array_equal(largest_absent(topology, np.arange(0), x, d, 4), [0, 1, 2, 3])


@pytest.mark.parametrize("wrong", ["rows", "columns", "kept"])
def test_arrays_of_inconsistent_sizes_are_refused(wrong):
    topology = Topology.random((5, 4), 6, seed=0)
    x, d, kept = np.ones((5, 2)), np.ones((4, 2)), np.arange(6)
    if wrong == "rows":
        x = x[:4]
    if wrong == "columns":
        d = d[:, :1]
    if wrong == "kept":
        kept = kept[::-1]
    with pytest.raises(ValueError):
        largest_absent(topology, kept, x, d, 1)


@given(searches())
def test_growing_at_positions_equals_building_from_all_positions(search):
    topology, kept, x, d, count = search
    places = largest_absent(topology, kept, x, d, count)
    native, general = grow_at(topology, kept, places), Rewiring.between(topology, kept, places)

    assert native.topology.tile == topology.tile, "the tiling stays"
    assert_array_equal(positions_of(native.topology), positions_of(general.topology))
    checked = Topology.checked(
        topology.shape, topology.tile, topology.grouped, native.topology.starts,
        native.topology.packed,
    )  # fmt: skip
    assert checked == native.topology
    survives = native.origin != GROWN
    assert_array_equal(native.origin[survives], kept)
    assert_array_equal(native.topology.positions[survives], topology.positions[kept])


@given(searches())
def test_only_empty_positions_are_returned(search):
    topology, kept, *_ = search
    rng = np.random.default_rng(0)
    places = rng.integers(topology.n_positions, size=50)
    taken = np.isin(places, topology.positions[kept])
    assert_array_equal(empty_among(topology, kept, places), places[~taken])


@pytest.mark.parametrize("places", [[-1], [20], [3, 3]])
def test_occupied_or_invalid_positions_are_refused(places):
    topology = Topology.from_positions((5, 4), [0, 1])
    with pytest.raises(ValueError):
        grow_at(topology, np.arange(2), np.array(places))
    with pytest.raises(ValueError):
        grow_at(topology, np.arange(2), np.array([1]))


@given(searches())
def test_slots_are_found_by_position(search):
    topology, *_ = search
    everywhere = np.arange(topology.n_positions)
    expected = np.full(topology.n_positions, -1)
    expected[topology.positions] = np.arange(topology.n_connections)
    assert_array_equal(slots_of(topology, everywhere), expected)


@pytest.mark.parametrize(("before", "after"), [(500, 40_000), (40_000, 500)])
def test_a_different_tiling_has_the_same_connections(before, after):
    shape = (900, 20_000)
    many = Topology.random(shape, 40_000, seed=0)
    few = grow_at(many, np.arange(0, 40_000, 80), np.arange(0)).topology
    topology = few if after == 500 else grow_at(
        Topology.random(shape, 1, seed=0), np.arange(0), np.sort(many.positions)
    ).topology  # fmt: skip
    fitting, order = laid_out(topology)
    assert fitting.tile != topology.tile, "or nothing was tested"
    assert fitting == Topology.from_positions(shape, topology.positions)
    assert_array_equal(fitting.positions, topology.positions[order])
