"""Losses and probabilities, against arithmetic by hand and against NumPy's own."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ratoon.errors import InvalidParameterError
from ratoon.kernels import LOSSES
from ratoon.kernels.reference import sample_losses
from ratoon.losses import mean_loss, probabilities


def test_softmax_cross_entropy_matches_a_hand_calculation():
    # Probabilities 1/4 and 3/4; the first sample is of the second class, the other of the first.
    outputs = np.log([[1.0, 3.0], [1.0, 3.0]])
    targets = np.array([[0.0, 1.0], [1.0, 0.0]])
    expected = (-np.log(3 / 4) - np.log(1 / 4)) / 2
    assert mean_loss("softmax_cross_entropy", outputs, targets) == pytest.approx(expected)
    assert_allclose(probabilities("softmax_cross_entropy", outputs), [[0.25, 0.75]] * 2)


def test_sigmoid_cross_entropy_matches_a_hand_calculation():
    outputs = np.array([[0.0, np.log(3.0)]])  # probabilities 1/2 and 3/4
    expected = -np.log(1 / 2) - np.log(3 / 4)
    assert mean_loss("sigmoid_cross_entropy", outputs, np.array([[0.0, 1.0]])) == pytest.approx(
        expected
    )
    assert_allclose(probabilities("sigmoid_cross_entropy", outputs), [[0.5, 0.75]])


def test_squared_error_is_half_the_square():
    assert mean_loss("squared_error", np.array([[3.0, 1.0]]), np.array([[0.0, 0.0]])) == 5.0


def test_huber_is_linear_beyond_one():
    # Errors 0.5, -1 and 3: 0.125 + 0.5 + 2.5.
    outputs = np.array([[0.5, -1.0, 3.0]])
    assert mean_loss("huber", outputs, np.zeros((1, 3))) == 3.125
    assert_allclose(sample_losses("huber", outputs, np.zeros((1, 3)))[1], [[0.5, -1.0, 1.0]])


def test_weights_make_a_weighted_mean():
    outputs, targets = np.array([[2.0], [0.0]]), np.zeros((2, 1))
    assert mean_loss("squared_error", outputs, targets, np.array([1.0, 3.0])) == 0.5


@pytest.mark.parametrize("loss", LOSSES)
def test_the_mean_loss_agrees_with_the_kernels(loss):
    rng = np.random.default_rng(0)
    outputs = rng.normal(scale=3.0, size=(7, 4))
    targets = np.eye(4)[rng.integers(4, size=7)]
    each = sample_losses(loss, outputs, targets)[0]
    assert mean_loss(loss, outputs, targets) == pytest.approx(np.mean(each), rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_outputs_of_any_size_give_finite_losses(loss):
    outputs = np.array([[1e4, -1e4]])
    assert np.isfinite(mean_loss(loss, outputs, np.array([[0.0, 1.0]])))


def test_probabilities_add_up_to_one_for_extreme_outputs():
    found = probabilities("softmax_cross_entropy", np.array([[1e30, 0.0], [-1e30, -1e30]]))
    assert_allclose(found, [[1.0, 0.0], [0.5, 0.5]])


def test_probabilities_of_other_losses_are_refused():
    with pytest.raises(InvalidParameterError, match="no probabilities"):
        probabilities("squared_error", np.zeros((1, 2)))
    with pytest.raises(InvalidParameterError, match="`loss` must be one of"):
        mean_loss("hinge", np.zeros((1, 2)), np.zeros((1, 2)))
