"""The released code's arithmetic, written anew: what it is said to do, it does."""

from __future__ import annotations

import numpy as np
import pytest
from references.released import ReleasedMLP, accuracies, places, sigmoid, started


@pytest.fixture
def network():
    return ReleasedMLP((12, 9, 8, 3), 2.0, np.random.default_rng(0))


def batch_of(n, seed=1):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, 12)), np.eye(3)[rng.integers(3, size=n)]


def test_start_draws_with_repetition_and_keeps_distinct_places():
    weights = started(50, 4, 10.0, np.random.default_rng(0))
    n_places, n_draws = 200, 540
    expected = n_places * (1 - (1 - 1 / n_places) ** n_draws)
    assert weights.nnz == pytest.approx(expected, abs=15)
    assert np.all(np.diff(places(weights)) > 0)


def test_a_step_reduces_its_loss(network):
    # The derivative of the sum of F(p) with F'(p) p'(z) = (p - y) s(p) (1 - s(p)) is what it uses.
    x, targets = batch_of(4)
    weights = network.weights[1]
    before = weights.data.copy()
    p = network.activations(x)[-1]
    error = (p - targets) * sigmoid(p) * (1 - sigmoid(p))

    def output_before_sigmoid(slot, shift):
        weights.data[slot] = before[slot] + shift
        found = network.activations(x)
        weights.data[slot] = before[slot]
        return found[-2] @ network.weights[2] + network.biases[2]

    expected = []
    for slot in range(before.size):
        change = output_before_sigmoid(slot, 1e-6) - output_before_sigmoid(slot, -1e-6)
        expected.append(np.sum(error * change) / 2e-6 / len(x))

    network.step(x, targets, 0.01)

    np.testing.assert_allclose(network.velocities[1], -0.01 * np.array(expected), atol=1e-9)
    np.testing.assert_allclose(weights.data, before + network.velocities[1] - 0.0002 * before)


def test_rewiring_keeps_counts_and_the_momentum_of_kept_connections(network):
    network.step(*batch_of(5), 0.01)
    before = [(dict(zip(places(w), v, strict=True)), w.nnz) for w, v in state_of(network)]
    weights = [dict(zip(places(w), w.data, strict=True)) for w in network.weights]

    network.rewire(0.3)

    for (momentum, count), old, (after, velocity) in zip(
        before, weights, state_of(network), strict=True
    ):
        assert after.nnz == count
        stays = [
            old.get(place) == value for place, value in zip(places(after), after.data, strict=True)
        ]
        assert 0 < sum(stays) < count
        for place, kept, value in zip(places(after), stays, velocity, strict=True):
            assert value == (momentum[place] if kept else 0.0)


def state_of(network):
    return list(zip(network.weights, network.velocities, strict=True))


@pytest.mark.parametrize("zeta", [0.0, 0.3])
def test_the_released_code_learns_an_easy_problem(zeta):
    rng = np.random.default_rng(2)
    x = rng.standard_normal((300, 20))
    classes = np.eye(2)[(x[:, 0] + x[:, 1] > 0).astype(int)]

    curve = accuracies(
        x[:202], classes[:202], x[202:], classes[202:],
        hidden=(40,), epsilon=5.0, zeta=zeta, learning_rate=0.1, n_epochs=30, seed=0,
    )  # fmt: skip

    assert len(curve) == 30
    assert max(curve) > 80
