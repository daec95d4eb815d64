"""A Boltzmann machine on connections does what one on matrices does."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ratoon.boltzmann import BoltzmannMachine, drawn
from ratoon.kernels import Rule, Step
from ratoon.layers import SparseLayer, make_layer
from ratoon.topology import Topology


def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))


def machine_of(n_in=7, n_out=5, *, density=0.4, seed=0, n_threads=1):
    layer = make_layer((n_in, n_out), density=density, seed=seed, dtype=np.float64)
    machine = BoltzmannMachine.of(layer, n_threads=n_threads)
    rng = np.random.default_rng(seed)
    machine.visible_bias[:] = rng.normal(size=n_in)
    layer.bias[:] = rng.normal(size=n_out)
    return machine


def dense(machine):
    return machine.layer.to_csr().toarray(), machine.visible_bias, machine.layer.bias


@pytest.mark.parametrize("n_samples", [1, 3, 8, 11])
def test_both_directions_equal_the_dense_matrix(n_samples):
    machine = machine_of()
    w, b, c = dense(machine)
    rng = np.random.default_rng(1)
    v, h = rng.random((7, n_samples)), rng.random((5, n_samples))
    assert_allclose(machine.hidden(v), sigmoid(w.T @ v + c[:, None]), rtol=1e-12)
    assert_allclose(machine.visible(h), sigmoid(w @ h + b[:, None]), rtol=1e-12)


@pytest.mark.parametrize("n_gibbs", [1, 3])
def test_steps_equal_those_of_a_dense_machine_with_a_mask(n_gibbs):
    machine = machine_of()
    w, b, c = (values.copy() for values in dense(machine))
    mask = machine.layer.topology.to_csr().toarray() > 0
    machine.clear_state(1)
    velocity = [np.zeros_like(values) for values in (w, b, c)]
    lr, mu, decay = 0.1, 0.9, 0.01
    for number in range(5):
        v0 = np.random.default_rng(number).random((7, 6))
        contrast = machine.contrast(v0, np.random.default_rng(99 + number), n_gibbs=n_gibbs)
        machine.descend(contrast, Rule.MOMENTUM, Step(lr, mu=mu, l2=decay))

        rng = np.random.default_rng(99 + number)
        h0 = hk = sigmoid(w.T @ v0 + c[:, None])
        for _ in range(n_gibbs):
            state = (rng.random(hk.shape) < hk) * 1.0
            vk = sigmoid(w @ state + b[:, None])
            hk = sigmoid(w.T @ vk + c[:, None])
        gradients = [
            mask * (vk @ hk.T - v0 @ h0.T) / 6 + decay * w,
            (vk - v0).mean(axis=1),
            (hk - h0).mean(axis=1),
        ]
        for k, gradient in enumerate(gradients):
            velocity[k] = mu * velocity[k] - lr * gradient
        w, b, c = w + mask * velocity[0], b + velocity[1], c + velocity[2]
        for ours, theirs in zip(dense(machine), (w, b, c), strict=True):
            assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_a_contrast_is_the_gradient_at_absent_connections_too():
    machine = machine_of()
    v0 = np.random.default_rng(0).random((7, 4))
    x, d = machine.contrast(v0, np.random.default_rng(5))
    h0, vk = machine.hidden(v0), x[:, 4:]
    assert_allclose(x @ d.T, (vk @ machine.hidden(vk).T - v0 @ h0.T) / 4, rtol=1e-9, atol=1e-12)


def test_the_pseudo_likelihood_equals_the_conditional_probabilities():
    machine = machine_of()
    w, b, c = dense(machine)

    def free_energy(v):
        return -b @ v - np.logaddexp(0.0, w.T @ v + c).sum()

    v = np.random.default_rng(3).integers(2, size=(7, 9)).astype(np.float64)
    expected = []
    for sample in v.T:
        total = 0.0
        for j in range(7):
            other = sample.copy()
            other[j] = 1.0 - other[j]
            total += -np.logaddexp(0.0, free_energy(sample) - free_energy(other))
        expected.append(total)
    assert_allclose(machine.pseudo_likelihood(v), expected, rtol=1e-9)


def test_neurons_without_connections_depend_on_their_bias_only():
    topology = Topology.from_pairs((3, 2), [1], [0])
    layer = SparseLayer(topology, np.array([2.0]), np.zeros(2))
    machine = BoltzmannMachine.of(layer)
    v = np.array([[1.0], [0.0], [1.0]])
    # 1 given the others: two neurons at one half, and one whose turning adds 2 to one input.
    expected = 2 * np.log(0.5) - np.logaddexp(0.0, np.logaddexp(0.0, 2.0) - np.log(2.0))
    assert_allclose(machine.pseudo_likelihood(v), [expected])


def test_gibbs_sampling_follows_the_distribution_of_the_energy():
    machine = machine_of(3, 2, density=0.7)
    w, b, c = dense(machine)
    states = np.array(list(product([0.0, 1.0], repeat=3)))
    weight = np.exp([b @ v + np.logaddexp(0.0, w.T @ v + c).sum() for v in states])
    expected = weight / weight.sum()
    rng = np.random.default_rng(0)
    n_chains = 20_000
    v = drawn(np.full((3, n_chains), 0.5), rng)
    for _ in range(40):
        v = drawn(machine.visible(drawn(machine.hidden(v), rng)), rng)
    seen = np.bincount((np.array([4, 2, 1]) @ v).astype(int), minlength=8) / n_chains
    # Chains are independent: each share has a binomial deviation; allow five.
    assert np.all(np.abs(seen - expected) < 5 * np.sqrt(expected * (1 - expected) / n_chains))


def test_the_number_of_threads_changes_nothing():
    v = np.random.default_rng(0).random((300, 16))
    found = []
    for n_threads in (1, 3):
        machine = machine_of(300, 200, density=0.1, n_threads=n_threads)
        contrast = machine.contrast(v, np.random.default_rng(1))
        machine.descend(contrast, Rule.SGD, Step(0.1))
        found.append(machine.layer.weights)
    assert_array_equal(*found)


def test_drawn_values_are_zeros_and_ones_with_the_given_probabilities():
    values = drawn(np.full(40_000, 0.3, dtype=np.float32), np.random.default_rng(0))
    assert values.dtype == np.float32
    assert set(np.unique(values)) == {0.0, 1.0}
    # Binomial deviation 0.0023; five of them.
    assert values.mean() == pytest.approx(0.3, abs=0.0115)
