"""Evolver: topologies change under an optimizer that never hears of it."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402

from ratoon.errors import InvalidInputError, InvalidParameterError  # noqa: E402
from ratoon.evolution import (  # noqa: E402
    SET,
    STRATEGIES,
    LayerwiseStrategy,
    RewiringSchedule,
    StatefulStrategy,
    Static,
    make_strategy,
)
from ratoon.topology import Rewiring  # noqa: E402
from ratoon.torch import Evolver, SparseLinear  # noqa: E402

EVERY_STEP = RewiringSchedule(every=1, unit="step")
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


def small_model(dtype=torch.float32):
    return nn.Sequential(
        SparseLinear(30, 40, density=0.2, seed=0, dtype=dtype),
        nn.ReLU(),
        SparseLinear(40, 20, density=0.2, seed=1, dtype=dtype),
        nn.ReLU(),
        nn.Linear(20, 5, dtype=dtype),
    )


def one_step(model, optimizer, x, evolver=None):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    if evolver is not None:
        evolver.step()
    return loss.item()


def as_dense(layer, values):
    """Return per-connection values as a matrix, NaN where there is no connection."""
    matrix = np.full(layer.topology.shape, np.nan)
    matrix[layer.topology.pairs()] = values.detach().numpy()
    return matrix


class Resize(LayerwiseStrategy):
    """Leave every layer half its connections, or double them."""

    def __init__(self, factor):
        self.factor = factor

    @property
    def schedule(self):
        return RewiringSchedule(unit="step")

    def rewire_layer(self, layer, clock, seed):
        n = layer.topology.n_connections
        kept = np.arange(0, n, 2 if self.factor < 1 else 1)
        return layer.topology.regrow(kept, int(self.factor * n) - kept.size, seed=seed)


class Listen(LayerwiseStrategy):
    """Change nothing; remember the gradients that one could have grown by."""

    def __init__(self):
        self.gradients = []

    @property
    def schedule(self):
        return RewiringSchedule(every=2, unit="step")

    def rewire_layer(self, layer, clock, seed):
        activations, errors = layer.signals()
        self.gradients.append(activations @ errors.T)
        return Rewiring.unchanged(layer.topology)


class Counting(StatefulStrategy):
    """Count what one is called for."""

    n_watched = 2

    @property
    def schedule(self):
        return RewiringSchedule(every=4, unit="step")

    def start_state(self, layers, seed):
        return {"watched": np.zeros(1, dtype=np.int64), "rewired": np.zeros(1, dtype=np.int64)}

    def watch(self, state, layers, clock):
        assert all(layer.signals() is not None for layer in layers)
        assert all(layer.learning_rate > 0 for layer in layers)
        return {**state, "watched": state["watched"] + 1}

    def rewire_from(self, state, layers, clock, seed):
        unchanged = [Rewiring.unchanged(layer.topology) for layer in layers]
        return unchanged, {**state, "rewired": state["rewired"] + 1}


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


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_strategy_trains_a_model(name, dtype):
    model = small_model(dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    evolver = Evolver(
        model, optimizer, name, RewiringSchedule(every=5, unit="step"), total_steps=30
    )
    x = torch.randn(16, 30, dtype=dtype)

    losses = [one_step(model, optimizer, x, evolver) for _ in range(30)]

    assert np.mean(losses[-3:]) < losses[0]
    for layer in evolver.layers:
        assert layer.values.numel() == layer.topology.n_connections == layer.packed.numel()
        torch.testing.assert_close(model(x), model(x.clone()))


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_default_schedule_of_every_strategy_is_accepted(name):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    evolver = Evolver(model, optimizer, name, total_steps=1000, steps_per_epoch=10)

    assert evolver.schedule == make_strategy(name).schedule


def test_rewirings_happen_when_due_and_not_after_the_last_step():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    evolver = Evolver(model, optimizer, SET(every=2), total_steps=12, steps_per_epoch=3)
    x = torch.randn(8, 30)

    grown = []
    for _ in range(12):
        one_step(model, optimizer, x)
        grown.append(evolver.step() > 0)

    assert np.flatnonzero(grown).tolist() == [5]  # after step 6; not after 12, the last


def test_static_never_rewires():
    model = small_model()
    before = [layer.topology for layer in model if isinstance(layer, SparseLinear)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    evolver = Evolver(model, optimizer, Static())
    for _ in range(5):
        one_step(model, optimizer, torch.randn(8, 30), evolver)

    assert [layer.topology for layer in evolver.layers] == before


def test_both_ways_to_rewire_give_the_same_bits():
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


def test_layers_listen_only_in_the_step_before_a_rewiring():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    evolver = Evolver(model, optimizer, Listen())  # every second step
    heard = []
    for _ in range(4):
        one_step(model, optimizer, torch.randn(8, 30))
        heard.append(len(model[0].handle.heard))
        evolver.step()

    assert heard == [0, 1, 0, 1]
    assert not model[0].handle.heard


def test_set_makes_no_layer_listen():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    Evolver(model, optimizer, SET(), EVERY_STEP)

    one_step(model, optimizer, torch.randn(8, 30))

    assert not model[0].handle.heard


def test_asking_for_gradients_that_never_came_is_an_error_with_advice():
    model = small_model()
    evolver = Evolver(model, torch.optim.SGD(model.parameters(), lr=0.1), Listen())

    evolver.step()
    with pytest.raises(InvalidInputError, match=r"optimizer\.step"):
        evolver.step()


def test_strategies_with_a_memory_watch_and_remember():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    evolver = Evolver(model, optimizer, Counting(), total_steps=11)
    for _ in range(11):
        one_step(model, optimizer, torch.randn(8, 30), evolver)

    # Rewired after steps 4 and 8; watched the two steps before each.
    assert evolver.state_dict()["strategy_state"]["watched"].tolist() == [4]
    assert evolver.state_dict()["strategy_state"]["rewired"].tolist() == [2]


def fresh(strategy, seed=3):
    model = small_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    every = RewiringSchedule(every=2, unit="step")
    return model, optimizer, Evolver(model, optimizer, strategy, every, total_steps=40, seed=seed)


@pytest.mark.parametrize("strategy", ["set", "rigl", Counting()], ids=str)
def test_going_on_from_saved_states_is_exact(strategy, tmp_path):
    data = torch.randn(10, 8, 30)
    model, optimizer, evolver = fresh(strategy)
    for x in data[:5]:
        one_step(model, optimizer, x, evolver)
    parts = {"model": model, "optimizer": optimizer, "evolver": evolver}
    torch.save({k: v.state_dict() for k, v in parts.items()}, tmp_path / "all.pt")
    for x in data[5:]:
        one_step(model, optimizer, x, evolver)

    other_model, other_optimizer, other_evolver = fresh(strategy, seed=99)
    saved = torch.load(tmp_path / "all.pt", weights_only=True)
    other_model.load_state_dict(saved["model"])
    other_optimizer.load_state_dict(saved["optimizer"])
    other_evolver.load_state_dict(saved["evolver"])
    for x in data[5:]:
        one_step(other_model, other_optimizer, x, other_evolver)

    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, other_model.state_dict()[name]), name


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
@pytest.mark.parametrize("strategy", ["set", "rigl"])
def test_a_whole_training_can_be_copied(copied, strategy):
    data = torch.randn(6, 8, 30)
    original = fresh(strategy)
    for x in data[:3]:
        one_step(*original[:2], x, original[2])
    twin = copied(original)
    for model, optimizer, evolver in (original, twin):
        for x in data[3:]:
            one_step(model, optimizer, x, evolver)

    assert twin[2].model is twin[0]
    assert torch.equal(original[0][0].values, twin[0][0].values)
    assert original[0][0].topology == twin[0][0].topology


class Loop:
    """Owns the loop and calls methods of a module, as Lightning's Trainer does."""

    def fit(self, module, batches):
        optimizer = module.configure_optimizers()
        module.on_train_start()
        for index, batch in enumerate(batches):
            optimizer.zero_grad()
            loss = module.training_step(batch, index)
            loss.backward()
            optimizer.step()
            module.on_train_batch_end(loss, batch, index)


class LitModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = small_model()

    def configure_optimizers(self):
        self.optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
        return self.optimizer

    def on_train_start(self):
        self.evolver = Evolver(self.body, self.optimizer, SET(), steps_per_epoch=2)

    def training_step(self, batch, index):
        return self.body(batch).square().mean()

    def on_train_batch_end(self, outputs, batch, index):
        self.evolver.step()


def test_a_loop_that_owns_the_training_works():
    module = LitModel()
    before = module.body[0].topology

    Loop().fit(module, torch.randn(4, 8, 30))

    assert module.body[0].topology != before
    assert module.evolver.steps_done == 4


def test_hooks_on_the_parameter_outlive_a_change_of_size():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    evolver = Evolver(model, optimizer, Resize(2))
    seen = []
    model[0].values.register_hook(lambda gradient: seen.append(gradient.numel()))
    model[0].values.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.numel()))
    for _ in range(2):
        one_step(model, optimizer, torch.randn(8, 30), evolver)

    assert seen == [240, 240, 480, 480]


def test_layers_the_optimizer_does_not_train_stay_as_they_are():
    model = small_model()
    before = model[2].topology
    optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1)
    evolver = Evolver(model, optimizer, SET(), EVERY_STEP)

    one_step(model, optimizer, torch.randn(8, 30), evolver)

    assert evolver.layers == [model[0]]
    assert model[2].topology is before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategy": SET()}, "steps_per_epoch"),
        ({"strategy": SET(until=0.5), "steps_per_epoch": 5}, "total_steps"),
        ({"strategy": SET(anneal="cosine"), "steps_per_epoch": 5}, "total_steps"),
        ({"strategy": SET(anneal="cosine"), "schedule": EVERY_STEP}, "total_steps"),
        ({"strategy": "sett"}, "must be a strategy"),
        ({"strategy": SET(), "steps_per_epoch": 0}, "at least 1"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    model = small_model()
    with pytest.raises(InvalidParameterError, match=message):
        Evolver(model, torch.optim.SGD(model.parameters(), lr=0.1), **arguments)


def test_a_model_without_sparse_layers_is_refused():
    model = nn.Linear(3, 3)
    with pytest.raises(InvalidInputError, match="no sparse layer"):
        Evolver(model, torch.optim.SGD(model.parameters(), lr=0.1), SET(), EVERY_STEP)


def test_a_state_that_is_no_evolvers_is_refused():
    _, optimizer, evolver = fresh("set")
    with pytest.raises(InvalidInputError, match="not the state of an evolver"):
        evolver.load_state_dict(optimizer.state_dict())
