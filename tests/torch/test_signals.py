"""Strategies that use gradients get the activations and errors of the layers."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402

from ratoon.errors import InvalidInputError  # noqa: E402
from ratoon.evolution import SET  # noqa: E402
from ratoon.torch import Evolver, SparseLinear  # noqa: E402
from tests.torch.cases import EVERY_STEP, Listen, one_step, small_model  # noqa: E402


@pytest.mark.parametrize("n_backward", [1, 2])
@pytest.mark.parametrize("batch", [8, 5])
def test_strategies_see_the_gradients_of_absent_connections(n_backward, batch):
    model = small_model(torch.float64)
    dense = nn.Sequential(*(m.to_dense() if isinstance(m, SparseLinear) else m for m in model))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    strategy = Listen()
    evolver = Evolver(model, optimizer, strategy)
    for _ in range(2):
        optimizer.zero_grad()
        dense.zero_grad()
        for _ in range(n_backward):  # more than one: gradients are accumulated
            x = torch.randn(batch, 30, dtype=torch.float64)
            model(x).square().mean().backward()
            dense(x).square().mean().backward()
        optimizer.step()
        evolver.step()

    for found, index in zip(strategy.gradients, (0, 2), strict=True):
        np.testing.assert_allclose(found, dense[index].weight.grad.T, rtol=1e-9, atol=1e-12)


def test_a_layer_used_twice_shows_the_sum_of_its_gradients():
    layer = SparseLinear(10, 10, density=0.3, dtype=torch.float64)
    dense = layer.to_dense()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.0)
    strategy = Listen()
    evolver = Evolver(layer, optimizer, strategy)
    x = torch.randn(8, 10, dtype=torch.float64)
    for _ in range(2):
        for module in (layer, dense):
            module.zero_grad()
            module(module(x).relu()).square().sum().backward()
        evolver.step()

    np.testing.assert_allclose(strategy.gradients[0], dense.weight.grad.T, rtol=1e-9, atol=1e-12)


def test_layers_record_signals_only_in_the_step_before_a_rewiring():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    evolver = Evolver(model, optimizer, Listen())  # every second step
    recorded = []
    for _ in range(4):
        one_step(model, optimizer, torch.randn(8, 30))
        recorded.append(len(model[0].handle.recorded))
        evolver.step()

    assert recorded == [0, 1, 0, 1]
    assert not model[0].handle.recorded


def test_set_does_not_record_signals():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    Evolver(model, optimizer, SET(), EVERY_STEP)

    one_step(model, optimizer, torch.randn(8, 30))

    assert not model[0].handle.recorded


def test_a_missing_backward_pass_raises_an_error_with_advice():
    model = small_model()
    evolver = Evolver(model, torch.optim.SGD(model.parameters(), lr=0.1), Listen())

    evolver.step()
    with pytest.raises(InvalidInputError, match=r"optimizer\.step"):
        evolver.step()
