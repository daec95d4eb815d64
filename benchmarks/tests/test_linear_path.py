"""The linear path next to a network: both learn from the error of their sum."""

from __future__ import annotations

import numpy as np
import pytest
from quality.linear_path import LinearPath

from ratoon.evolution import Static
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD
from ratoon.training import Training, TrainingData, TrainingPlan


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    z = rng.standard_normal((6, 4)).astype(np.float32)
    return z, rng.standard_normal((6, 2)).astype(np.float32)


def trained(z, targets, *, n_epochs, learning_rate=0.05):
    path = LinearPath(z, z, targets.shape[1])
    network = SparseMLP.start((4, 3, 2), density=0.5, seed=0)
    plan = TrainingPlan(
        loss="squared_error",
        optimizer=SGD(),
        learning_rate=learning_rate,
        batch_size=6,
        n_epochs=n_epochs,
        evolution=Static(),
        shuffle=False,
        seed=0,
    )
    before = network.outputs(z)
    data = TrainingData.of(z, targets, np.float32, offset=path(z))
    training = Training(network, data, plan, runner=path)
    training.run()
    return path, network, before, training.history


def test_the_first_step_follows_the_gradient_of_the_sum(data):
    z, targets = data
    path, _, before, _ = trained(z, targets, n_epochs=1)
    rate = 2.0 / np.square(z).sum(axis=1).max()
    np.testing.assert_allclose(path.weights, rate * z.T @ (targets - before) / 6, rtol=1e-5)


def test_path_and_network_together_fit_the_targets(data):
    z, _ = data
    targets = z[:, :2] - 2.0 * z[:, 2:]
    path, network, _, history = trained(z, targets, n_epochs=200)
    losses = history.column("loss")
    assert losses[-1] < 1e-3 * losses[0]
    np.testing.assert_allclose(network.outputs(z) + path(z), targets, atol=0.1)
