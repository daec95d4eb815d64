"""A state that was written and read continues like the one that was never written."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from ratoon.errors import FormatError
from ratoon.evolution import make_strategy
from ratoon.history import EpochRecord, History
from ratoon.storage import (
    Document,
    history_from_arrays,
    history_to_arrays,
    state_from_parts,
    state_to_parts,
)
from ratoon.storage.rules import Violation
from ratoon.training import EarlyStopping, Training
from tests.storage.cases import a_training, from_bytes, network_hash, to_bytes


def through_a_file(state):
    values, arrays, networks = state_to_parts(state)
    values = json.loads(json.dumps(values))
    found = from_bytes(to_bytes(Document({"progress": values}, arrays, networks)))
    arrays = dict(found.arrays)
    again = state_from_parts(found.config["progress"], arrays, found.networks)
    assert not arrays, "every array is taken"
    return again


def a_state(strategy="dsr", *, epochs=3, **stopping):
    stopping = EarlyStopping(**{"patience": 4, "tol": 0.001, **stopping})
    run = a_training(evolution=make_strategy(strategy), stopping=stopping, n_epochs=20)
    run.run(epochs, restore_best=False)
    run.state.seed, run.state.cycle = 2**70 + 1, 3
    return run


@pytest.mark.parametrize("restore_best", [True, False])
@pytest.mark.parametrize("strategy", ["dsr", "set", "snfs"])
def test_every_part_of_a_state_is_read_as_written(strategy, restore_best):
    state = a_state(strategy, epochs=6, restore_best=restore_best).state
    again = through_a_file(state)
    for name in ("seed", "cycle", "epochs_done", "rewired_by_layer", "history", "cycle_seed"):
        assert getattr(again, name) == getattr(state, name), name
    for name in ("patience", "tol", "restore_best", "best_score", "best_epoch", "n_waited"):
        assert getattr(again.stopping, name) == getattr(state.stopping, name), name
    assert network_hash(again.network) == network_hash(state.network)
    assert network_hash(again.best) == network_hash(state.best)
    assert again.evolution_state.keys() == state.evolution_state.keys()
    for name, array in state.evolution_state.items():
        np.testing.assert_array_equal(again.evolution_state[name], array)


def test_a_state_before_its_first_epoch_is_read_as_written():
    state = a_training(stopping=EarlyStopping()).state
    again = through_a_file(state)
    assert (again.epochs_done, again.evolution_state, len(again.history)) == (0, None, 0)
    assert (again.stopping.best_score, again.stopping.best_epoch) == (-float("inf"), -1)
    assert again.best is again.network


@pytest.mark.parametrize("strategy", ["dsr", "set", "snfs"])
def test_a_state_that_was_written_trains_on_to_the_same_bits(strategy):
    run = a_state(strategy)
    run.state.seed, run.state.cycle = run.plan.seed, 0
    again = Training(through_a_file(run.state), run.data, run.plan, validation=run.validation)
    for training in (run, again):
        training.run(restore_best=False)
    assert again.epochs_done == run.epochs_done
    assert again.rewired_by_layer == run.rewired_by_layer
    assert again.history.column("loss") == run.history.column("loss")
    assert network_hash(again.network) == network_hash(run.network)
    assert network_hash(again.state.best) == network_hash(run.state.best)


@pytest.mark.parametrize(
    "change",
    [
        lambda v, a, n: v.pop("seed"),
        lambda v, a, n: v.update(more=1),
        lambda v, a, n: v.update(seed="-1"),
        lambda v, a, n: v.update(seed="1" * 1001),
        lambda v, a, n: v.update(cycle=-1),
        lambda v, a, n: v.update(epochs_done=2**53 + 1),
        lambda v, a, n: v.update(rewired=[1]),
        lambda v, a, n: v.update(rewired=[1, -1]),
        lambda v, a, n: v.update(evolving=None),
        lambda v, a, n: v.update(stopping=None),
        lambda v, a, n: v["stopping"].update(patience=-1),
        lambda v, a, n: v["stopping"].update(patience=2.5),
        lambda v, a, n: v["stopping"].update(tol="0"),
        lambda v, a, n: v["stopping"].update(restore_best=1),
        lambda v, a, n: v["stopping"].update(best_score=None),
        lambda v, a, n: v["stopping"].update(best_epoch=-2),
        lambda v, a, n: v["stopping"].update(best_epoch=-1),
        lambda v, a, n: v["stopping"].update(n_waited=-1),
        lambda v, a, n: v["stopping"].pop("n_waited"),
        lambda v, a, n: a.pop("history/loss"),
        lambda v, a, n: n.pop(),
        lambda v, a, n: n.clear(),
        lambda v, a, n: n.append(n[0]),
    ],
)
def test_invalid_parts_of_a_state_are_refused(change):
    values, arrays, networks = state_to_parts(a_state().state)
    change(values, arrays, networks)
    with pytest.raises((FormatError, Violation)):
        state_from_parts(values, arrays, networks)


RECORD = EpochRecord(0, 0.7, 0.1, 10**10, 0.02, 3, 1.0, 0.5, 0.1, None, 0.9, None)


def test_a_history_is_read_from_a_file_as_written():
    history = History(
        [
            RECORD,
            replace(RECORD, epoch=1, validation_loss=math.inf, train_score=-math.inf),
            replace(RECORD, epoch=2, validation_score=None, loss=1 / 3),
        ]
    )
    found = from_bytes(to_bytes(Document({}, history_to_arrays(history)))).arrays
    assert history_from_arrays(found) == history
    assert found == {}, "all of them were taken"


def test_nan_is_read_as_written():
    arrays = history_to_arrays(History([replace(RECORD, loss=math.nan)]))
    assert math.isnan(history_from_arrays(arrays)[0].loss)


def test_an_empty_history_is_read_as_written():
    assert history_from_arrays(history_to_arrays(History())) == History()


def test_ten_thousand_epochs_leave_the_header_small():
    history = History([replace(RECORD, epoch=epoch) for epoch in range(10_000)])
    raw = to_bytes(Document({}, history_to_arrays(history)))
    assert int.from_bytes(raw[:8], "little") < 6000


def test_a_quantity_missing_in_an_old_file_has_its_default():
    arrays = history_to_arrays(History([RECORD, RECORD]))
    for name in ("evaluate_seconds", "validation_loss"):
        del arrays[f"history/{name}"], arrays[f"history/{name}.state"]
    expected = replace(RECORD, evaluate_seconds=0.0, validation_loss=None)
    assert history_from_arrays(arrays) == History([expected, expected])
    assert arrays == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.pop("history/loss"),
        lambda arrays: arrays.update({"history/loss": np.zeros(3)}),
        lambda arrays: arrays.update({"history/loss": np.zeros((1, 1))}),
        lambda arrays: arrays.update({"history/epoch": np.zeros(1)}),
        lambda arrays: arrays.update({"history/epoch": np.zeros(2, dtype=np.int64)}),
        lambda arrays: arrays["history/loss.state"].fill(0),  # a loss cannot be absent
        lambda arrays: arrays["history/loss.state"].fill(9),
    ],
)
def test_invalid_arrays_of_a_history_are_refused(change):
    arrays = history_to_arrays(History([RECORD]))
    change(arrays)
    with pytest.raises(FormatError):
        history_from_arrays(arrays)
