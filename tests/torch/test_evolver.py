"""Evolver: rewiring a model without changes to its optimizer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402

from ratoon.errors import (  # noqa: E402
    AlreadyTrainingError,
    InvalidInputError,
    InvalidParameterError,
)
from ratoon.evolution import (  # noqa: E402
    SET,
    STRATEGIES,
    NeuronPruning,
    RewiringHasNoEffectWarning,
    RewiringSchedule,
    Static,
    make_strategy,
)
from ratoon.torch import Evolver, SparseLinear  # noqa: E402
from tests.torch.cases import EVERY_STEP, Counting, one_step, small_model  # noqa: E402


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_rewires_layers_of_tokens_as_layers_of_their_samples(name):
    found = []
    for shape in ((6, 5, 30), (30, 30)):  # batch x tokens x features, and the same as samples
        torch.manual_seed(0)
        model = small_model(torch.float32)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        evolver = Evolver(
            model, optimizer, name, RewiringSchedule(every=5, unit="step"), total_steps=30
        )
        x = torch.randn(30, 30, generator=torch.Generator().manual_seed(1)).reshape(shape)
        for _ in range(12):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            evolver.step()
        layers = evolver.layers
        found.append([(layer.topology.content_hash(), layer.values.tolist()) for layer in layers])
    assert found[0] == found[1]


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


def test_a_minibatch_of_many_rows_is_never_decomposed_by_rows(monkeypatch):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    schedule = RewiringSchedule(every=5, unit="step")
    evolver = Evolver(model, optimizer, "snfs", schedule, total_steps=10)
    svd, sizes = np.linalg.svd, []
    monkeypatch.setattr(
        np.linalg, "svd", lambda m, **how: [sizes.append(m.shape), svd(m, **how)][1]
    )
    for _ in range(10):
        one_step(model, optimizer, torch.randn(4096, 30), evolver)
    assert max(map(max, sizes), default=0) < 600


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


def test_stateful_strategies_watch_and_keep_their_state():
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    evolver = Evolver(model, optimizer, Counting(), total_steps=11)
    for _ in range(11):
        one_step(model, optimizer, torch.randn(8, 30), evolver)

    # Rewired after steps 4 and 8; watched the two steps before each.
    assert evolver.state_dict()["strategy_state"]["watched"].tolist() == [4]
    assert evolver.state_dict()["strategy_state"]["rewired"].tolist() == [2]


def test_layers_not_in_the_optimizer_are_not_rewired():
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
        ({"strategy": SET(), "schedule": RewiringSchedule(5, "permille")}, "total_steps"),
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


@pytest.mark.parametrize("method", ["step", "rewire"])
@pytest.mark.parametrize("shares", ["evolver", "model"])
def test_an_evolver_at_work_refuses_a_second_thread(method, shares):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    found = []

    class Elsewhere(SET):
        def rewire_in_place(self, *args, **kwargs):
            if not found:
                with ThreadPoolExecutor(1) as pool:
                    found.append(pool.submit(getattr(other, method)).exception())
            return super().rewire_in_place(*args, **kwargs)

    every_step = RewiringSchedule(every=1, unit="step")
    evolver = Evolver(model, optimizer, Elsewhere(), every_step, total_steps=10)
    other = evolver
    if shares == "model":
        other = Evolver(model, optimizer, SET(), every_step, total_steps=10)
    evolver.step()
    assert isinstance(found[0], AlreadyTrainingError)
    other.step()


def test_a_strategy_that_cannot_rewire_full_layers_gives_a_warning():
    model = nn.Sequential(
        SparseLinear(6, 5, density=1.0), nn.ReLU(), SparseLinear(5, 2, density=1.0)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with pytest.warns(RewiringHasNoEffectWarning, match="SET changes nothing") as found:
        Evolver(model, optimizer, SET(), total_steps=10, steps_per_epoch=2)
    assert found[0].filename == __file__
    pruning = NeuronPruning(warm_up=0.0, prune_every=1, percentile=50.0)
    evolver = Evolver(model, optimizer, pruning, total_steps=10, steps_per_epoch=2)
    for _ in range(4):
        one_step(model, optimizer, torch.randn(4, 6), evolver)
    assert evolver.layers[0].topology.n_connections < 30
