"""A training with an evolver can be saved, copied, and run by a trainer class."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn  # noqa: E402

from ratoon.errors import InvalidInputError  # noqa: E402
from ratoon.evolution import SET  # noqa: E402
from ratoon.torch import Evolver  # noqa: E402
from tests.torch.cases import Counting, fresh, one_step, small_model  # noqa: E402


@pytest.mark.parametrize(
    "strategy", ["set", "rigl", "dsr", Counting()], ids=["set", "rigl", "dsr", "own"]
)
def test_resuming_from_saved_states_is_exact(strategy, tmp_path):
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
    assert other_evolver.strategy_state.keys() == evolver.strategy_state.keys()
    for name, array in evolver.strategy_state.items():
        np.testing.assert_array_equal(other_evolver.strategy_state[name], array)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
@pytest.mark.parametrize("strategy", ["set", "rigl"])
def test_a_training_can_be_deep_copied(copied, strategy):
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


def test_an_evolver_works_in_a_trainer_class():
    module = LitModel()
    before = module.body[0].topology

    Loop().fit(module, torch.randn(4, 8, 30))

    assert module.body[0].topology != before
    assert module.evolver.steps_done == 4


def test_the_state_of_another_object_is_refused():
    _, optimizer, evolver = fresh("set")
    with pytest.raises(InvalidInputError, match="not the state of an evolver"):
        evolver.load_state_dict(optimizer.state_dict())
