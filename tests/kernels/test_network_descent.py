"""Steps and losses compared with numerical derivatives."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ratoon.kernels import (
    ACTIVATIONS,
    LOSSES,
    NativeNetwork,
    Rule,
    Step,
    as_samples,
    reference,
)
from ratoon.topology import Topology
from tests.kernels.models import (
    data_for,
    small_model,
)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_step_follows_the_numerical_gradient(loss, activation, dropout):
    model = small_model(loss, activation, dropout=dropout)
    x, targets, extras = data_for(model, 5, sample_weights=True, offset=True)
    extras["sample_weights"] += 0.5
    network, samples, order = model.native(), as_samples(x, model.dtype), np.arange(5)

    def loss_after(lr=0.0):
        step = [Step(lr=lr)]
        return network.train(samples, targets, order, 5, Rule.SGD, step, **extras).loss

    parameters = [array for _, w, b, *_ in model.layers for array in (w, b)]
    numerical = [np.empty_like(array) for array in parameters]
    # A central difference over h = 1e-5 is off by about h^2 = 1e-10 times the third derivative,
    # and by the rounding of the loss, 1e-16 / h = 1e-11.
    h = 1e-5
    for array, gradient in zip(parameters, numerical, strict=True):
        for k in range(array.size):
            value = array[k]
            array[k] = value + h
            above = loss_after()
            array[k] = value - h
            below = loss_after()
            array[k] = value
            gradient[k] = (above - below) / (2 * h)
    before = [array.copy() for array in parameters]
    loss_after(lr=1.0)
    for array, old, gradient in zip(parameters, before, numerical, strict=True):
        assert_allclose(old - array, gradient, rtol=0, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_twins_error_is_the_derivative_of_its_loss(loss):
    rng = np.random.default_rng(0)
    output, targets = rng.normal(size=(1, 4)), np.array([[0.0, 1.0, 0.0, 0.0]])
    _, errors = reference.sample_losses(loss, output, targets)
    for k in range(4):
        h = np.eye(4)[[k]] * 1e-6
        above, below = (reference.sample_losses(loss, output + s * h, targets)[0] for s in (1, -1))
        # As above: 1e-12 and 1e-10.
        assert_allclose((above - below) / 2e-6, errors[0, k], atol=1e-8)


def test_extreme_outputs_give_finite_losses():
    topology = Topology.full((1, 2))
    for loss in ("softmax_cross_entropy", "sigmoid_cross_entropy"):
        network = NativeNetwork(np.float32, loss, 1)
        network.add_layer(topology, np.array([1, -1], np.float32), np.zeros(2, np.float32))
        for value in (1e4, -1e4, 3e38):
            outcome = network.train(
                as_samples(np.array([[value]], np.float32), np.float32),
                np.array([[1, 0]], np.float32),
                np.array([0]),
                1,
                Rule.SGD,
                [Step(lr=0.0)],
            )
            assert np.isfinite(outcome.loss)
            assert not outcome.diverged
