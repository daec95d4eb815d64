"""The twins compared with formulas, dense matrices and published numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from ratoon.errors import InvalidInputError
from ratoon.kernels import ACTIVATIONS, LOSSES, Rule, Step, reference
from tests.kernels.cases import cases


def test_random_bits_are_those_published_for_splitmix64():
    # From the reference implementation by Vigna (prng.di.unimi.it/splitmix64.c), seed 1234567.
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert [reference.random_bits(1234567, counter) for counter in range(5)] == published


def test_random_bits_stay_within_64_bits_for_any_seed():
    for seed in (0, 1, 2**63, 2**64 - 1):
        for counter in (0, 2**32, 2**64 - 1):
            assert 0 <= reference.random_bits(seed, counter) < 2**64
            assert reference.random_below(seed, counter, 7) < 7
            assert reference.random_below(seed, counter, 2**62) < 2**62


@given(total=st.integers(0, 60), data=st.data())
def test_distinct_numbers_are_distinct_sorted_and_as_many_as_asked(total, data):
    count = data.draw(st.integers(0, total))
    drawn = reference.draw_distinct(total, count, seed=data.draw(st.integers(0, 2**64 - 1)))
    assert len(drawn) == count
    assert drawn == sorted(set(drawn))
    assert all(0 <= number < total for number in drawn)


@pytest.mark.parametrize("count", [-1, 11])
def test_more_distinct_numbers_than_exist_are_refused(count):
    with pytest.raises(InvalidInputError):
        reference.draw_distinct(10, count, seed=0)


@given(case=cases(max_in=40, max_out=40))
def test_forward_and_backward_are_products_with_the_dense_matrix(case):
    weights, bias, x, dy = case.exact()
    dense = np.zeros(case.topology.shape)
    dense[case.topology.pairs()] = weights
    gradients = np.empty_like(weights)

    y = reference.forward(case.topology, weights, bias, x)
    dx = reference.backward(case.topology, Rule.STORE, weights, x, dy, first=gradients)

    # Sums of at most 40 x 40 numbers below 1, added in another order.
    assert_allclose(y, dense.T @ x + bias[:, np.newaxis], atol=1e-12)
    assert_allclose(dx, dense @ dy, atol=1e-12)
    assert_allclose(gradients, (x @ dy.T)[case.topology.pairs()], atol=1e-12)
    assert_array_equal(weights, case.weights)


def test_nesterov_looks_ahead():
    # Momentum at the place where the weight will be: w + mu v - lr g, with v already updated.
    w, v, g = np.array([1.0]), np.array([0.5]), np.array([2.0])
    reference.update(Rule.NESTEROV, w, g, Step(lr=0.1, mu=0.9), first=v)
    assert_allclose(v, 0.9 * 0.5 - 0.1 * 2)
    assert_allclose(w, 1 + 0.9 * 0.25 - 0.1 * 2)


def test_adam_is_that_of_the_paper():
    # Kingma and Ba (2015), algorithm 1: three steps, with lr and correction as `Step` wants them.
    lr, beta1, beta2, eps = 0.1, 0.9, 0.99, 1e-8
    w, m, s = np.array([1.0]), np.zeros(1), np.zeros(1)
    theta, mean, square = 1.0, 0.0, 0.0
    for t, g in enumerate([0.5, -2.0, 1.0], start=1):
        step = Step(
            lr=lr / (1 - beta1**t),
            mu=beta1,
            beta2=beta2,
            adam_eps=eps,
            correction=1 / np.sqrt(1 - beta2**t),
        )
        reference.update(Rule.ADAM, w, np.array([g]), step, first=m, second=s)
        mean, square = beta1 * mean + (1 - beta1) * g, beta2 * square + (1 - beta2) * g**2
        theta -= lr * (mean / (1 - beta1**t)) / (np.sqrt(square / (1 - beta2**t)) + eps)
        assert_allclose(w, theta, rtol=1e-14)


def test_both_forms_of_decay_are_applied():
    for step, expected in (
        (Step(lr=0.1, l2=0.5), 2 - 0.1 * (3 + 1)),
        (Step(lr=0.1, shrink=0.5), 0.7),
    ):
        w = np.array([2.0])
        reference.update(Rule.SGD, w, np.array([3.0]), step)
        assert_allclose(w, expected)


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_derivatives_are_those_of_the_activations(kind):
    slope = ACTIVATIONS[kind].slope * (-1 if ACTIVATIONS[kind].alternates else 1)
    z = np.array([-3.0, -0.7, 0.2, 5.0])
    h = 1e-6
    above, below, y = z + h, z - h, z.copy()
    for values in (above, below, y):
        reference.activate(kind, values, slope=slope)
    d = np.ones(4)
    reference.derive(kind, z if kind in reference.DERIVED_FROM_INPUT else y, d, slope=slope)
    # Central differences over 1e-6: off by 1e-12, and by 1e-10 from rounding.
    assert_allclose(d, (above - below) / (2 * h), atol=1e-8)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="softplus"):
        reference.activate("softplus", np.ones(1))
    with pytest.raises(ValueError, match="softplus"):
        reference.derive("softplus", np.ones(1), np.ones(1))
    with pytest.raises(ValueError, match="hinge"):
        reference.sample_losses("hinge", np.ones((1, 1)), np.ones((1, 1)))


# Targets of "given_gradient" are gradients, so no prediction is perfect.
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "given_gradient"])
def test_a_perfect_prediction_costs_nothing(loss):
    for_numbers = LOSSES[loss].is_for_numbers
    perfect = np.array([[1.0, 0.0]]) if for_numbers else np.array([[60.0, -60.0]])
    losses, errors = reference.sample_losses(loss, perfect, np.array([[1.0, 0.0]]))
    assert_allclose(losses, 0, atol=1e-20)
    assert_allclose(errors, 0, atol=1e-20)
