"""Gradients without an update are those that a step of plain descent takes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ratoon.kernels import Rule, Step, as_samples, derive
from ratoon.network import SparseMLP


@pytest.mark.parametrize("batch", [1, 7, 32, 33, 100])
@pytest.mark.parametrize("loss", ["softmax_cross_entropy", "squared_error"])
def test_gradients_are_what_a_step_without_momentum_subtracts(batch, loss):
    rng = np.random.default_rng(batch)
    x, targets = rng.standard_normal((batch, 40)), np.eye(3)[rng.integers(0, 3, batch)]
    weights = rng.uniform(0.5, 2.0, batch)
    network = SparseMLP.start((40, 60, 3), epsilon=4, seed=0, dtype=np.float64)
    samples, order = as_samples(x, np.float64), rng.permutation(batch)
    _, of_weights, of_biases = network.native(loss, 1).gradients(
        samples, targets, order, sample_weights=weights
    )
    before = network.copy()
    network.native(loss, 1).train(
        samples, targets, order, batch, Rule.SGD, [Step(lr=0.5)], sample_weights=weights
    )
    for old, new, dw, db in zip(before.layers, network.layers, of_weights, of_biases, strict=True):
        assert_allclose(old.weights - new.weights, 0.5 * dw, rtol=1e-9, atol=1e-14)
        assert_allclose(old.bias - new.bias, 0.5 * db, rtol=1e-9, atol=1e-14)


def test_a_minibatch_in_blocks_is_one_minibatch():
    rng = np.random.default_rng(0)
    x, targets = rng.standard_normal((64, 40)), np.eye(3)[rng.integers(0, 3, 64)]
    network = SparseMLP.start((40, 60, 3), epsilon=4, seed=0, dtype=np.float64)
    native, samples = network.native("softmax_cross_entropy", 1), as_samples(x, np.float64)
    loss, whole, _ = native.gradients(samples, targets, np.arange(64))
    halves = [native.gradients(samples, targets, np.arange(k, k + 32)) for k in (0, 32)]
    assert_allclose(loss, (halves[0][0] + halves[1][0]) / 2)
    for layer, dw in enumerate(whole):
        mean = (halves[0][1][layer] + halves[1][1][layer]) / 2
        assert_allclose(dw, mean, rtol=1e-10, atol=1e-15)


def test_a_slope_of_0_is_that_of_relu():
    d = np.ones(3)
    derive("leaky_relu", np.array([2.0, 0.0, 0.0]), d, slope=0.0)
    assert d.tolist() == [1.0, 0.0, 0.0]
