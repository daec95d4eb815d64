"""Training on sparse samples costs what their non-zeros cost, and gives what dense samples give."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from ratoon.kernels import NativeNetwork, Rule, Scaling, Step, as_samples, available_isas, use_isa
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD, Adam, cosine
from ratoon.topology import Topology
from ratoon.training import Training, TrainingData, TrainingPlan

OPTIMIZERS = {
    "plain": SGD(0.0, weight_decay=0.01),
    "momentum": SGD(0.9, weight_decay=0.01),
    "nesterov": SGD(0.9, nesterov=True, weight_decay=0.01),
    "released decay": SGD(0.9, weight_decay=0.01, decay="released"),
    "no decay": SGD(0.9),
    "adam": Adam(weight_decay=0.01),
}


def sparse_samples(n_samples=60, n_features=800, density=0.003):
    """Return samples with many rare features and a few that most samples have, and their classes.

    Rare ones are taken non-zero by non-zero, the others as rows.
    """
    rng = np.random.default_rng(0)
    x = scipy.sparse.random_array(
        (n_samples, n_features), density=density, format="lil", random_state=rng
    )
    for feature in (3, 400, 799):
        has_it = rng.random(n_samples) < 0.8
        x[np.flatnonzero(has_it), feature] = rng.uniform(-1, 1, has_it.sum())
    return scipy.sparse.csr_array(x), np.eye(3)[rng.integers(0, 3, n_samples)]


def trained(x, y, optimizer, *, hidden=(50,), schedule=None, batch_size=7):
    scale = np.linspace(0.5, 2.0, x.shape[1])
    network = SparseMLP.start(
        (x.shape[1], *hidden, 3),
        epsilon=5,
        seed=1,
        dtype=np.float64,
        scaling=Scaling(None, scale, 1.5),
    )
    options = {} if schedule is None else {"schedule": schedule}
    plan = TrainingPlan(
        optimizer=optimizer, learning_rate=0.1, batch_size=batch_size, n_epochs=3, **options
    )
    Training(network, TrainingData.of(x, y, np.float64), plan).run()
    return network


@pytest.mark.parametrize("schedule", [None, cosine], ids=["constant", "cosine"])
@pytest.mark.parametrize("hidden", [(50,), ()], ids=["hidden", "no hidden layer"])
@pytest.mark.parametrize("batch_size", [1, 7, 40])
@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
def test_sparse_and_dense_samples_train_the_same_network(optimizer, batch_size, hidden, schedule):
    x, y = sparse_samples()
    sparse, dense = (
        trained(samples, y, optimizer, hidden=hidden, schedule=schedule, batch_size=batch_size)
        for samples in (x, x.toarray())
    )
    for a, b in zip(sparse.layers, dense.layers, strict=True):
        # Idle steps are taken at once instead of one by one: rounding of some 30 float64 steps.
        assert_allclose(a.weights, b.weights, rtol=1e-11, atol=1e-13)
        for one, other in zip(a.state, b.state, strict=True):
            assert_allclose(one, other, rtol=1e-9, atol=1e-14)


def test_a_feature_that_never_occurs_still_decays():
    x, y = sparse_samples()
    x = scipy.sparse.csr_array(x.toarray() * (np.arange(800) < 400))
    network = trained(x, y, SGD(0.9, weight_decay=0.05))
    fresh = SparseMLP.start((800, 50, 3), epsilon=5, seed=1, dtype=np.float64)
    unseen = fresh.layers[0].topology.rows >= 400
    before, after = fresh.layers[0].weights[unseen], network.layers[0].weights[unseen]
    assert np.all(np.abs(after) < np.abs(before))
    assert_array_equal(np.sign(after), np.sign(before))


@pytest.mark.parametrize("isa", available_isas())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_prediction_does_not_depend_on_other_rows(dtype, isa):
    x, _ = sparse_samples()
    network = SparseMLP.start((800, 50, 3), epsilon=5, seed=1, dtype=dtype)
    with use_isa(isa):
        together = network.outputs(x)
        assert_array_equal(np.vstack([network.outputs(x[[i]]) for i in range(60)]), together)
        assert_array_equal(network.outputs(x[::7]), together[::7])
        assert_allclose(network.outputs(x.toarray()), together, rtol=1e-4, atol=1e-5)


def one_layer(dtype=np.float32):
    """Return a network of one layer with momentum, and its arrays."""
    topology = Topology.random((800, 3), 900, seed=2)
    weights = np.random.default_rng(3).normal(size=900).astype(dtype)
    bias, state = np.zeros(3, dtype), np.full(900, 0.01, dtype)
    network = NativeNetwork(dtype, "softmax_cross_entropy", 1)
    network.add_layer(topology, weights, bias, state=[state], bias_state=[np.zeros(3, dtype)])
    return network, weights, state


def test_samples_changed_during_training_leave_the_weights_of_the_last_step():
    x, y = sparse_samples()
    x, y = x.astype(np.float32), y.astype(np.float32)
    x.indices = x.indices.astype(np.int32)
    order, steps_done = np.tile(np.arange(60), 20_000), []

    def spoil(done):
        steps_done.append(done)
        x.indices[:] = 800

    network, weights, state = one_layer()
    steps = [Step(lr=0.01, mu=0.9, l2=0.01)] * (order.size // 10)
    samples = as_samples(x, np.float32)
    with pytest.raises(ValueError, match="changed while in use"):
        network.train(samples, y, order, 10, Rule.MOMENTUM, steps, progress=spoil)

    again, expected, expected_state = one_layer()
    x, _ = sparse_samples()
    n = steps_done[0]
    again.train(as_samples(x, np.float32), y, order[: 10 * n], 10, Rule.MOMENTUM, steps[:n])
    assert_array_equal(weights, expected)
    assert_array_equal(state, expected_state)


def test_an_order_changed_during_training_has_no_effect():
    x, y = sparse_samples()
    samples, y = as_samples(x, np.float32), y.astype(np.float32)
    steps = [Step(lr=0.01, mu=0.9)] * 60_000

    def trained(spoil):
        order, calls = np.tile(np.arange(60), 10_000), []

        def progress(done):
            calls.append(done)
            if spoil:
                order[:] = 10**12

        network, weights, _ = one_layer()
        network.train(samples, y, order, 10, Rule.MOMENTUM, steps, progress=progress)
        assert calls, "the order was changed during training"
        return weights

    assert_array_equal(trained(spoil=True), trained(spoil=False))


def test_layers_with_more_than_65536_features_and_outputs_train():
    rng = np.random.default_rng(0)
    x = scipy.sparse.random_array((40, 400_000), density=0.005, format="csr", random_state=rng)
    y = np.eye(3)[rng.integers(0, 3, 40)]
    networks = []
    for samples in (x, x.toarray()):
        network = SparseMLP.start((400_000, 70_000, 3), epsilon=0.5, seed=1, dtype=np.float64)
        # 40 x 2,000 features touch some 70,000 of 400,000: below a quarter, above one piece.
        plan = TrainingPlan(learning_rate=0.1, batch_size=40, n_epochs=2)
        Training(network, TrainingData.of(samples, y, np.float64), plan).run()
        networks.append(network)
    for a, b in zip(networks[0].layers, networks[1].layers, strict=True):
        assert_allclose(a.weights, b.weights, rtol=1e-10, atol=1e-13)
