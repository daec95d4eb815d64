"""A sparse layer: values stay aligned with connections, whatever happens to them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.errors import InvalidParameterError
from ratoon.layers import SparseLayer, make_layer
from ratoon.topology import GROWN, Rewiring, Topology


@pytest.fixture
def layer():
    #    outputs:    0     1     2      a dot is an absent connection
    #    input 0    1.0    .     .
    #    input 1     .    2.0    .
    #    input 2     .     .    3.0
    topology = Topology.from_pairs((3, 3), [0, 1, 2], [0, 1, 2])
    made = SparseLayer(topology, np.array([1.0, 2.0, 3.0]), np.zeros(3))
    made.clear_state(1)
    made.state[0][:] = [10.0, 20.0, 30.0]
    return made


def test_a_layer_has_the_requested_parameters():
    made = make_layer(
        (100, 50), density=0.1, seed=3, activation="relu", dropout=0.2, dtype=np.float64
    )
    assert made.shape == (100, 50)
    assert made.n_connections == made.weights.size == 500
    assert made.weights.dtype == made.bias.dtype == np.float64
    assert not made.bias.any()
    assert made.state == made.bias_state == []


def test_a_given_topology_is_used_unchanged():
    topology = Topology.from_pairs((4, 2), [0, 3], [1, 0])
    assert make_layer((4, 2), topology=topology, seed=0).topology == topology


def test_a_rewiring_carries_weights_and_state_along(layer):
    rewiring = Rewiring.between(layer.topology, kept=np.array([0, 2]), grown=np.array([1]))
    layer.apply(rewiring)
    matrix = layer.to_csr().toarray()
    assert_array_equal(matrix, [[1, 0, 0], [0, 0, 0], [0, 0, 3]])
    assert layer.n_connections == 3, "the new connection exists although its weight is 0"
    momentum = layer.topology.to_csr(layer.state[0]).toarray()
    assert_array_equal(momentum, [[10, 0, 0], [0, 0, 0], [0, 0, 30]])


def test_new_connections_get_the_weights_of_the_strategy(layer):
    kept = Rewiring.between(layer.topology, kept=np.array([0, 1, 2]), grown=np.array([1, 6]))
    layer.apply(Rewiring(kept.topology, kept.origin, np.array([0.5, -0.5])))
    assert sorted(layer.weights[kept.origin == GROWN]) == [-0.5, 0.5]
    assert not layer.state[0][kept.origin == GROWN].any(), "new connections have no momentum"


def test_a_copy_shares_nothing_that_training_changes(layer):
    twin = layer.copy()
    for values in (twin.weights, twin.bias, *twin.state, *twin.bias_state):
        values += 1.0
    assert_array_equal(layer.weights, [1.0, 2.0, 3.0])
    assert_array_equal(layer.state[0], [10.0, 20.0, 30.0])
    assert not layer.bias.any()
    assert twin.topology is layer.topology


def test_read_only_arrays_are_copied_when_they_must_be_written(layer):
    layer.weights.flags.writeable = False
    momentum = layer.state[0]
    layer.own_arrays()
    layer.weights += 1.0
    assert layer.state[0] is momentum, "what can be written is left where it is"


def test_clear_state_allocates_the_arrays_of_the_optimizer(layer):
    layer.clear_state(2)
    assert [values.shape for values in layer.state] == [(3,), (3,)]
    assert [values.shape for values in layer.bias_state] == [(3,), (3,)]
    assert not any(values.any() for values in (*layer.state, *layer.bias_state))
    layer.clear_state(0)
    assert layer.state == layer.bias_state == []


def test_a_connection_with_momentum_takes_twelve_bytes():
    made = make_layer((2000, 2000), density=0.05, seed=0)
    made.clear_state(1)
    rest = 2 * made.bias.nbytes + made.topology.starts.nbytes
    assert made.nbytes() == 12 * made.n_connections + rest


@pytest.mark.parametrize("wrong", [{"activation": "softplus"}, {"dropout": 1.0}, {"dropout": -0.1}])
def test_invalid_layers_are_refused(wrong):
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        make_layer((4, 4), density=0.5, seed=0, **wrong)
