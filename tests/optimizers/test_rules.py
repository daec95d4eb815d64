"""Optimizers: steps worked out by hand, and what is refused."""

import numpy as np
import pytest

from ratoon.errors import InvalidParameterError
from ratoon.kernels import Rule
from ratoon.kernels.reference import update
from ratoon.layers import SparseLayer
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD, Adam, RMSprop
from ratoon.topology import Topology
from ratoon.training import Training, TrainingData, TrainingPlan


def trained(optimizer, n_steps, learning_rate=0.1, weight=1.0, bias=0.0, target=0.0):
    """One connection of the given weight; half the square of 2 * weight is made small.

    The gradient is 4 w: the sample is 2, the target 0.  The bias is trained along, so we look at
    the first steps only, with its part in them written out.
    """
    layer = SparseLayer(Topology.full((1, 1)), np.array([weight]), np.array([bias]))
    network = SparseMLP([layer])
    data = TrainingData.of(np.array([[2.0]]), np.array([[target]]), np.float64)
    plan = TrainingPlan(
        loss="squared_error",
        optimizer=optimizer,
        learning_rate=learning_rate,
        batch_size=1,
        n_epochs=n_steps,
    )
    Training(network, data, plan).run()
    return layer


def test_gradient_descent_matches_a_hand_calculation():
    # Output 2 w + b = 2: dw = 4, db = 2.
    layer = trained(SGD(momentum=0.0), n_steps=1)
    assert layer.weights == pytest.approx([0.6])
    assert layer.bias == pytest.approx([-0.2])
    assert layer.state == []


def test_momentum_matches_a_hand_calculation():
    # After one step w = 0.6, b = -0.2, v = -0.4, -0.2.  Output 1: dw = 2, db = 1.
    # v = 0.9 * -0.4 - 0.2 = -0.56;  w = 0.04;  v = 0.9 * -0.2 - 0.1 = -0.28;  b = -0.48
    layer = trained(SGD(momentum=0.9), n_steps=2)
    assert layer.weights == pytest.approx([0.04])
    assert layer.bias == pytest.approx([-0.48])
    assert layer.state[0] == pytest.approx([-0.56])


def test_nesterov_matches_a_hand_calculation():
    # v = -0.4;  w = 1 + 0.9 * -0.4 - 0.4 = 0.24
    layer = trained(SGD(momentum=0.9, nesterov=True), n_steps=1)
    assert layer.weights == pytest.approx([0.24])
    assert layer.bias == pytest.approx([0.9 * -0.2 - 0.2])


def test_coupled_decay_is_part_of_the_gradient_and_released_decay_is_not():
    # coupled: w = 1 - 0.1 * (4 + 0.5 * 1);  released: w = 1 - 0.1 * 4 - 0.5 * 1
    coupled = trained(SGD(momentum=0.0, weight_decay=0.5), n_steps=1)
    released = trained(SGD(momentum=0.0, weight_decay=0.5, decay="released"), n_steps=1)
    assert coupled.weights == pytest.approx([0.55])
    assert released.weights == pytest.approx([0.1])


def test_released_decay_does_not_depend_on_the_learning_rate():
    tiny = trained(
        SGD(momentum=0.9, weight_decay=0.25, decay="released"), n_steps=1, learning_rate=1e-12
    )
    assert tiny.weights == pytest.approx([0.75])
    # The gradient is 4, the weight 1: what of the momentum is not -4e-12 would be the decay.
    assert tiny.state[0] == pytest.approx([-4e-12]), "it does not enter the momentum either"


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        (SGD(momentum=0.0, weight_decay=0.5), 2.4),
        (SGD(momentum=0.0, weight_decay=0.5, decay="released"), 1.4),
        (RMSprop(weight_decay=0.5), 2.1),
        (Adam(weight_decay=0.5), 2.1),
    ],
)
def test_biases_decay_with_the_released_decay_only(optimizer, expected):
    # Output 2 + 2 = 4: dw = 8, db = 4.  Without decay b = 2 + 0.4 (the target is 8).
    layer = trained(optimizer, n_steps=1, bias=2.0, target=8.0)
    assert layer.bias == pytest.approx([expected])


def test_sixty_steps_with_the_released_decay_agree_with_the_arithmetic_of_the_authors():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 12)), np.eye(3)[rng.integers(3, size=50)]
    network = SparseMLP.start((12, 9, 8, 3), epsilon=2.0, init="set", seed=0, dtype="float64")
    weights = [layer.to_csr().toarray() for layer in network.layers]
    masks = [values != 0 for values in weights]
    biases = [layer.bias.copy() for layer in network.layers]
    velocities = [
        (np.zeros_like(w), np.zeros_like(b)) for w, b in zip(weights, biases, strict=True)
    ]
    plan = TrainingPlan(
        loss="sigmoid_cross_entropy",
        optimizer=SGD(momentum=0.9, weight_decay=0.002, decay="released"),
        learning_rate=0.1,
        batch_size=50,
        n_epochs=60,
        shuffle=False,
    )

    Training(network, TrainingData.of(x, y, np.float64), plan).run()
    for _ in range(60):
        flow = [x]
        for w, b in zip(weights, biases, strict=True):
            flow.append(np.maximum(flow[-1] @ w + b, 0.0))
        output = flow[-2] @ weights[-1] + biases[-1]
        error = 1 / (1 + np.exp(-output)) - y
        for w, b, mask, velocity, below in reversed(
            list(zip(weights, biases, masks, velocities, flow[:-1], strict=True))
        ):
            gradients = (below.T @ error / 50 * mask, error.mean(axis=0))
            error = (error @ w.T) * (below > 0)
            for values, v, gradient in zip((w, b), velocity, gradients, strict=True):
                v *= 0.9
                v -= 0.1 * gradient
                values += v - 0.002 * values

    for layer, w, b in zip(network.layers, weights, biases, strict=True):
        assert np.abs(b).max() > 0.01
        np.testing.assert_allclose(layer.to_csr().toarray(), w, rtol=0, atol=1e-15)
        np.testing.assert_allclose(layer.bias, b, rtol=0, atol=1e-15)


def test_the_first_step_of_adam_is_the_learning_rate():
    # m / sqrt(s) is the sign of the gradient once both are corrected for their start at 0.
    layer = trained(Adam(), n_steps=1)
    assert layer.weights == pytest.approx([0.9])
    assert layer.bias == pytest.approx([-0.1])


def test_adam_matches_the_formulas_of_its_paper():
    rng = np.random.default_rng(0)
    w, m, s = rng.normal(size=5), np.zeros(5), np.zeros(5)
    mine = (w.copy(), m.copy(), s.copy())
    adam = Adam(beta_1=0.8, beta_2=0.95, adam_eps=1e-3, weight_decay=0.1)
    for number in range(4):
        g = rng.normal(size=5)
        m = 0.8 * m + 0.2 * g
        s = 0.95 * s + 0.05 * g**2
        corrected_m, corrected_s = m / (1 - 0.8 ** (number + 1)), s / (1 - 0.95 ** (number + 1))
        w = w - 0.01 * corrected_m / (np.sqrt(corrected_s) + 1e-3) - 0.01 * 0.1 * w
        update(adam.rule, mine[0], g, adam.step(0.01, number), first=mine[1], second=mine[2])
    np.testing.assert_allclose(mine[0], w, rtol=1e-12)


def test_each_rule_keeps_the_arrays_it_needs():
    assert (SGD(momentum=0.0).rule, SGD(momentum=0.0).n_states) == (Rule.SGD, 0)
    assert (SGD().rule, SGD().n_states) == (Rule.MOMENTUM, 1)
    assert (SGD(nesterov=True).rule, SGD(nesterov=True).n_states) == (Rule.NESTEROV, 1)
    assert (Adam().rule, Adam().n_states) == (Rule.ADAM, 2)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: SGD(momentum=1.0), "momentum"),
        (lambda: SGD(weight_decay=-0.1), "weight_decay"),
        (lambda: SGD(weight_decay=float("nan")), "weight_decay"),
        (lambda: SGD(decay="decoupled"), "decay"),
        (lambda: Adam(beta_1=1.0), "beta_1"),
        (lambda: Adam(beta_2=-0.1), "beta_2"),
        (lambda: Adam(adam_eps=0.0), "adam_eps"),
        (lambda: Adam(weight_decay=-1.0), "weight_decay"),
    ],
)
def test_invalid_values_are_refused_by_name(make, name):
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        make()


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_rmsprop_is_adam_without_a_first_moment(weight_decay):
    how = {"beta_2": 0.9, "adam_eps": 0.1, "weight_decay": weight_decay}
    found, expected = (
        trained(optimizer, n_steps=5) for optimizer in (RMSprop(**how), Adam(beta_1=0.0, **how))
    )
    assert found.weights == pytest.approx(expected.weights, rel=1e-12)
    assert found.state[0] == pytest.approx(expected.state[1], rel=1e-12)
    assert len(found.state) == 1


def test_rmsprop_by_hand():
    # dw = 4, s = 0.1 * 16, corrected 16: the step is lr * 4 / (4 + 0.1).
    layer = trained(RMSprop(beta_2=0.9, adam_eps=0.1), n_steps=1)
    assert layer.weights == pytest.approx([1 - 0.1 * 4 / 4.1])
    assert layer.state[0] == pytest.approx([1.6])


@pytest.mark.parametrize(
    "how", [{"beta_2": 1.0}, {"adam_eps": 0.0}, {"weight_decay": -1.0}], ids=str
)
def test_rmsprop_refuses_invalid_values(how):
    with pytest.raises(InvalidParameterError, match=next(iter(how))):
        RMSprop(**how)
