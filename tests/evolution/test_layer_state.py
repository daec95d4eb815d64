"""What a strategy can ask of a layer."""

import tracemalloc

import numpy as np
import pytest

from ratoon.errors import InvalidInputError
from ratoon.evolution import LayerState
from ratoon.topology import Topology
from tests.evolution.cases import dense_of, layer_state, random_layer


@pytest.fixture(params=[(30, 20, 150), (1, 7, 4), (500, 3, 200), (6, 4, 0), (5, 5, 25)])
def layer(request):
    n_in, n_out, n_connections = request.param
    return random_layer((n_in, n_out), n_connections)


def test_neighbour_lists_hold_every_connection_once_in_both_directions(layer):
    _, mask = dense_of(layer)
    for lists, matrix, other in (
        (layer.by_input, mask, layer.topology.columns),
        (layer.by_output, mask.T, layer.topology.rows),
    ):
        assert lists.starts.size == matrix.shape[0] + 1
        assert sorted(lists.slots) == list(range(layer.topology.n_connections))
        for neuron, row in enumerate(matrix):
            neighbours, slots = lists.of(neuron)
            np.testing.assert_array_equal(neighbours, np.flatnonzero(row))
            np.testing.assert_array_equal(other[slots], neighbours)


def test_neighbour_lists_are_computed_once_and_read_only():
    layer = random_layer()
    assert layer.by_input is layer.by_input
    for array in vars(layer.by_output).values():
        assert array.dtype == np.int64
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_neighbour_lists_of_a_wide_layer_need_little_memory():
    layer = layer_state(Topology.random((200_000, 200_000), 100_000, seed=0))
    tracemalloc.start()
    try:
        assert layer.by_input.slots.size == layer.by_output.slots.size == 100_000
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


def test_degrees_and_strengths_are_sums_over_rows_and_columns(layer):
    matrix, mask = dense_of(layer)
    for axis, (degree, strength) in enumerate(zip(layer.degrees(), layer.strengths(), strict=True)):
        np.testing.assert_array_equal(degree, mask.sum(axis=1 - axis))
        np.testing.assert_allclose(strength, np.abs(matrix).sum(axis=1 - axis), rtol=1e-5)


def test_activity_is_the_mean_magnitude_of_the_signals():
    layer = random_layer()
    for found, rows in zip(layer.activity(), layer.signals(), strict=True):
        np.testing.assert_allclose(found, np.abs(rows).mean(axis=1), rtol=1e-5)


def test_gradients_are_those_of_the_dense_matrix():
    layer = random_layer()
    x, d = layer.signals()
    positions = np.array([599, 0, 7, 7])
    np.testing.assert_allclose(
        layer.gradients_at(positions), (x @ d.T).ravel()[positions], rtol=1e-4, atol=1e-6
    )
    assert layer.gradients_at(np.empty(0, dtype=np.int64)).size == 0


@pytest.mark.parametrize("position", [-1, 600])
def test_a_position_outside_the_layer_is_refused(position):
    with pytest.raises(InvalidInputError, match=r"not in \[0, 600\)"):
        random_layer().gradients_at(np.array([3, position]))


def test_a_layer_without_signals_has_neither_activity_nor_gradients():
    layer = LayerState(Topology.random((3, 3), 2, seed=0), np.ones(2))
    for ask in (layer.activity, lambda: layer.gradients_at(np.array([0]))):
        with pytest.raises(InvalidInputError, match="this strategy uses gradients"):
            ask()
