"""Everything PyTorch stores per connection moves with its connection."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402

from ratoon.evolution import SET, LayerwiseStrategy, RewiringSchedule  # noqa: E402
from ratoon.torch import Evolver  # noqa: E402
from tests.torch.cases import EVERY_STEP, Resize, as_dense, one_step, small_model  # noqa: E402

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.9, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "nadam": lambda p: torch.optim.NAdam(p, lr=0.01),
}


@pytest.mark.parametrize("optimizer_name", OPTIMIZERS)
@pytest.mark.parametrize("strategy", [SET(zeta=0.4, grown="zero"), Resize(0.5), Resize(2)])
def test_optimizer_state_moves_with_its_connections(optimizer_name, strategy):
    model = small_model()
    optimizer = OPTIMIZERS[optimizer_name](model.parameters())
    evolver = Evolver(model, optimizer, strategy, RewiringSchedule(every=3, unit="step"))
    x = torch.randn(16, 30)
    for _ in range(2):
        one_step(model, optimizer, x, evolver)
    one_step(model, optimizer, x)
    layer = model[0]
    parameter = layer.values
    n_before = layer.n_connections
    kept = optimizer.state[parameter]
    names = [n for n, t in kept.items() if torch.is_tensor(t) and t.shape == parameter.shape]
    before = {name: as_dense(layer, kept[name]) for name in names}
    before["weights"] = as_dense(layer, layer.values)

    assert evolver.step() > 0 or strategy.factor == 0.5

    assert layer.values is parameter
    assert parameter.grad is None
    survives = ~np.isnan(before["weights"]) & ~np.isnan(as_dense(layer, layer.values))
    expected = {SET: 1}.get(type(strategy), getattr(strategy, "factor", None)) * n_before
    assert layer.n_connections == layer.topology.n_connections == expected
    assert survives.sum() >= 0.5 * n_before
    after = {name: as_dense(layer, optimizer.state[parameter][name]) for name in names}
    after["weights"] = as_dense(layer, layer.values)
    grown = np.isnan(before["weights"]) & ~np.isnan(after["weights"])
    for name, matrix in after.items():
        # Where SET drew a place that it had just vacated, the connection is new as well.
        differs = survives & (matrix != before[name])
        assert np.all(matrix[differs] == 0), name
        assert differs.sum() <= 0.1 * n_before
        assert np.all(matrix[grown] == 0), name
    for _ in range(4):  # and on it goes, through the next rewiring
        one_step(model, optimizer, x, evolver)


def test_in_place_and_general_rewiring_agree_bit_for_bit():
    class General(LayerwiseStrategy):
        """SET without its way of rewiring in place."""

        schedule = EVERY_STEP
        rewire_layer = staticmethod(SET(zeta=0.3).rewire_layer)

    models, topologies = [], []
    for strategy in (SET(zeta=0.3), General()):
        model = small_model()
        nn.init.ones_(model[4].weight)
        nn.init.zeros_(model[4].bias)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        evolver = Evolver(model, optimizer, strategy, EVERY_STEP, seed=5)
        torch.manual_seed(1)
        for _ in range(6):
            one_step(model, optimizer, torch.randn(8, 30), evolver)
        models.append(model)
        topologies.append([layer.topology for layer in evolver.layers])

    assert topologies[0] == topologies[1]
    assert torch.equal(models[0][0].values, models[1][0].values)


def test_hooks_on_the_parameter_remain_after_a_change_of_size():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    evolver = Evolver(model, optimizer, Resize(2))
    seen = []
    model[0].values.register_hook(lambda gradient: seen.append(gradient.numel()))
    model[0].values.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.numel()))
    for _ in range(2):
        one_step(model, optimizer, torch.randn(8, 30), evolver)

    assert seen == [240, 240, 480, 480]
