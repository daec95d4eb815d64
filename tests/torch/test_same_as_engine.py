"""The same network trained by ratoon and by PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from sklearn.datasets import load_digits  # noqa: E402
from torch import nn  # noqa: E402

from ratoon import optimizers  # noqa: E402
from ratoon.evolution import SET, Static  # noqa: E402
from ratoon.network import SparseMLP  # noqa: E402
from ratoon.torch import Evolver, SparseLinear  # noqa: E402
from ratoon.training import Training, TrainingData, TrainingPlan  # noqa: E402

BATCH, N_STEPS = 32, 20
RULES = {
    "sgd": (
        optimizers.SGD(momentum=0.9, weight_decay=1e-2),
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-2),
    ),
    "nesterov": (
        optimizers.SGD(momentum=0.9, nesterov=True),
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    ),
    "adam": (
        optimizers.Adam(weight_decay=0.01),
        lambda p: torch.optim.AdamW(p, lr=0.05, weight_decay=0.01),
    ),
}


def digits(n_samples, dtype):
    data = load_digits()
    x = np.ascontiguousarray(data.data[:n_samples] / 16, dtype=dtype)
    return x, data.target[:n_samples]


def by_the_engine(network, x, y, optimizer, evolution):
    """Return the loss of every epoch."""
    plan = TrainingPlan(
        optimizer=optimizer,
        learning_rate=0.05,
        batch_size=BATCH,
        n_epochs=N_STEPS * BATCH // x.shape[0],
        evolution=evolution,
        shuffle=False,
        seed=11,
    )
    targets = np.eye(10, dtype=x.dtype)[y]
    training = Training(network, TrainingData.of(x, targets, x.dtype), plan)
    training.run()
    return training.history.column("loss")


def by_torch(model, x, y, make_optimizer, evolution):
    # ratoon decays weights and not biases; in PyTorch this takes parameter groups.
    biases = [layer.bias for layer in model if isinstance(layer, SparseLinear)]
    weights = [layer.values for layer in model if isinstance(layer, SparseLinear)]
    optimizer = make_optimizer([{"params": weights}, {"params": biases, "weight_decay": 0.0}])
    per_epoch = x.shape[0] // BATCH
    evolver = Evolver(
        model, optimizer, evolution, total_steps=N_STEPS, steps_per_epoch=per_epoch, seed=11
    )
    losses = []
    for step in range(N_STEPS):
        rows = slice(step % per_epoch * BATCH, (step % per_epoch + 1) * BATCH)
        optimizer.zero_grad()
        out = model(torch.from_numpy(x[rows]))
        loss = nn.functional.cross_entropy(out, torch.from_numpy(y[rows]))
        loss.backward()
        optimizer.step()
        evolver.step()
        losses.append(loss.item())
    return np.reshape(losses, (-1, per_epoch)).mean(axis=1)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("evolution", [Static(), SET(zeta=0.3)], ids=["static", "set"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_samples", [BATCH, 5 * BATCH])  # an epoch is one step, or five
def test_both_give_the_same_losses_over_20_steps(rule, evolution, dtype, n_samples):
    x, y = digits(n_samples, dtype)
    network = SparseMLP.start((64, 50, 40, 10), density=0.3, seed=4, dtype=dtype)
    layers = [
        SparseLinear.from_connections(layer.topology, layer.weights.copy(), layer.bias.copy())
        for layer in network.layers
    ]
    model = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
    ours, theirs = RULES[rule]

    expected = by_the_engine(network, x, y, ours, evolution)
    found = by_torch(model, x, y, theirs, evolution)

    np.testing.assert_allclose(found, expected, rtol=1e-4)
    if dtype == np.float64:
        for layer, twin in zip(network.layers, layers, strict=True):
            assert layer.topology == twin.topology
            np.testing.assert_allclose(twin.values.detach().numpy(), layer.weights, rtol=1e-6)
