"""SparseMLP: layers in a row, and the arithmetic of their outputs."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from ratoon.errors import InvalidInputError
from ratoon.kernels import Scaling
from ratoon.layers import SparseLayer
from ratoon.network import SparseMLP
from ratoon.samples.in_memory import wrap
from ratoon.topology import Topology
from tests.processes import run_python


def by_hand():
    """Two inputs, two hidden neurons (ReLU), one output; one hidden neuron sees one input only."""
    first = Topology.from_scipy(np.array([[1.0, 0.0], [-2.0, 3.0]]))
    last = Topology.from_scipy(np.array([[5.0], [7.0]]))
    return SparseMLP(
        [
            SparseLayer(*first, np.array([0.5, -1.0]), activation="relu"),
            SparseLayer(*last, np.array([0.25])),
        ]
    )


def test_outputs_match_a_hand_calculation():
    # hidden 1: 1 * 1 - 2 * 2 + 0.5 = -2.5, so 0;  hidden 2: 3 * 2 - 1 = 5;  7 * 5 + 0.25
    network = by_hand()
    assert_array_equal(network.outputs(np.array([[1.0, 2.0]])), [[35.25]])
    assert_array_equal(network.outputs(np.array([[1.0, 2.0]]), layer=0), [[0.0, 5.0]])


def test_samples_are_scaled_while_they_are_read():
    scaled = SparseMLP(by_hand().layers, Scaling(np.array([1.0, 0.0]), np.array([1.0, 0.5])))
    x = np.array([[2.0, 4.0]])
    assert_array_equal(scaled.outputs(x), by_hand().outputs(np.array([[1.0, 2.0]])))
    assert_array_equal(x, [[2.0, 4.0]])


def test_outputs_agree_with_dense_matrices():
    network = SparseMLP.start((30, 40, 20, 3), density=0.2, seed=0, dtype=np.float64)
    x = np.random.default_rng(0).normal(size=(9, 30))
    z = x
    for layer in network.layers:
        z = z @ layer.to_csr().toarray() + layer.bias
        z = np.maximum(z, 0) if layer.activation == "relu" else z
    # Sums of at most a few dozen terms of size one, in another order.
    assert_allclose(network.outputs(x), z, atol=1e-13)


def test_a_network_has_the_requested_parameters():
    network = SparseMLP.start(
        (100, 50, 10), epsilon=2, seed=0, output_init="zero", activation="tanh", dropout=0.3
    )
    hidden, output = network.layers
    assert network.widths == (100, 50, 10)
    assert network.n_connections == 300 + 120
    assert network.n_positions == 5500
    assert network.density == 420 / 5500
    assert (hidden.activation, hidden.dropout) == ("tanh", 0.3)
    assert (output.activation, output.dropout) == ("identity", 0.0)
    assert hidden.weights.any()
    assert not output.weights.any()


def test_all_relu_alternates_the_sign_of_its_slope():
    network = SparseMLP.start((5, 5, 5, 5), density=0.5, seed=0, activation="all_relu", slope=0.6)
    assert [layer.slope for layer in network.layers[:2]] == [-0.6, 0.6]


def test_a_network_without_hidden_layer_is_a_linear_model():
    network = SparseMLP.start((6, 2), density=1.0, seed=0, dtype=np.float64)
    x = np.eye(6)
    assert_allclose(network.outputs(x), network.layers[0].to_csr().toarray(), atol=1e-15)


def test_layers_of_equal_shape_have_different_connections():
    network = SparseMLP.start((80, 80, 80), density=0.1, seed=0)
    assert network.layers[0].topology != network.layers[1].topology


def test_given_topologies_are_used_and_the_others_drawn():
    mine = Topology.from_pairs((4, 3), [0, 1], [0, 2])
    network = SparseMLP.start((4, 3, 2), density=0.5, seed=0, topologies=[mine, None])
    assert network.layers[0].topology == mine
    assert network.layers[1].n_connections == 3


def test_the_same_seed_gives_the_same_network_on_any_number_of_threads():
    one, two = (SparseMLP.start((50, 40, 3), density=0.2, seed=9, n_threads=n) for n in (1, 2))
    for a, b in zip(one.layers, two.layers, strict=True):
        assert a.topology == b.topology
        assert_array_equal(a.weights, b.weights)


def test_a_summary_has_a_line_per_layer():
    first, last = SparseMLP.start((100, 50, 3), epsilon=5, seed=0).summary()
    assert (first.n_in, first.n_out, first.n_connections) == (100, 50, 750)
    assert first.density == 0.15
    assert last.megabytes > 0


def test_the_strength_of_an_input_is_the_sum_of_its_weights_magnitudes():
    assert_array_equal(by_hand().input_strength(), [1.0, 5.0])


def test_training_a_copy_does_not_change_the_original():
    network = by_hand()
    twin = network.copy()
    twin.layers[0].weights[:] = np.nan
    assert network.is_finite()
    assert not twin.is_finite()


def test_layers_of_mismatched_sizes_are_refused():
    layers = [*by_hand().layers, *by_hand().layers]
    with pytest.raises(InvalidInputError, match="1 outputs cannot feed one of 2"):
        SparseMLP(layers)


def test_other_number_types_are_refused():
    with pytest.raises(InvalidInputError, match="float32 or float64"):
        SparseMLP.start((4, 2), density=0.5, seed=0, dtype=np.float16)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("density", [0.02, 0.5])
@pytest.mark.parametrize("scaled", [True, False])
def test_idle_inputs_are_left_out_of_predictions_of_sparse_samples(
    dtype, density, scaled, monkeypatch
):
    rng = np.random.default_rng(0)
    scaling = Scaling(None, rng.uniform(0.5, 2.0, 300), 3.0) if scaled else Scaling()
    made = SparseMLP.start((300, 20, 3), density=density, seed=0, scaling=scaling, dtype=dtype)
    x = scipy.sparse.csr_array(rng.normal(size=(25, 300)) * (rng.random((25, 300)) < 0.3))
    expected = made.outputs(x), made.outputs(x, layer=0)
    monkeypatch.setattr("ratoon.network._MANY_INPUTS", 0)
    monkeypatch.setattr("ratoon.network._IDLE_FACTOR", 0)
    assert made._of_connected_inputs(wrap(x))[1].widths[0] <= 300
    close = {"rtol": 1e-5, "atol": 1e-6} if dtype == "bfloat16" else {"rtol": 0, "atol": 0}
    np.testing.assert_allclose(made.outputs(x), expected[0], **close)
    np.testing.assert_allclose(made.outputs(x, layer=0), expected[1], **close)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("n_connections", [0, 5])
def test_a_prediction_costs_nothing_for_a_hundred_million_idle_inputs(dtype, n_connections):
    code = """
import resource, sys, time
import numpy as np, scipy.sparse
from ratoon.layers import make_layer
from ratoon.network import SparseMLP
from ratoon.samples.in_memory import wrap
from ratoon.topology import Topology
from tests.processes import run_python
n_in, n = 2**27, int(sys.argv[2])
topology = Topology.from_pairs((n_in, 3), np.arange(n) * 1000, np.arange(n) % 3)
network = SparseMLP([make_layer((n_in, 3), topology=topology, seed=0, dtype=sys.argv[1])])
x = scipy.sparse.csr_array((np.ones(2), [0, n_in - 1], [0, 1, 2]), shape=(2, n_in))
before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
found = network.outputs(x)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(found.shape, after - before < 50_000, time.process_time() - started < 0.5)
"""
    pytest.importorskip("resource")
    done = run_python(code, dtype, n_connections)
    assert done.stdout == "(2, 3) True True\n", done.stderr
