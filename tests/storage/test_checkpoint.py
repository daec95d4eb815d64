"""Trainings that stop in different ways and resume to the same result."""

import copy
import errno
import os
import pickle
import shutil
import signal
import stat

import numpy as np
import pytest

from ratoon.errors import DivergenceError, FormatError, InvalidParameterError
from ratoon.evolution import STRATEGIES, make_strategy
from ratoon.kernels import available_isas, use_isa
from ratoon.storage import (
    Checkpoint,
    CheckpointDirectory,
    CheckpointWarning,
    Document,
    LockedError,
    ResumeError,
    SaveError,
    read_document,
    write_document,
)
from ratoon.training import Callback, EarlyStopping
from tests.storage.cases import a_training, network_hash, patient


class StopAfter(Callback):
    """Ends a training in the given way once so many epochs are done."""

    def __init__(self, epoch, raised=None):
        self.epoch, self.raised = epoch, raised

    def on_epoch_end(self, training, record):
        if training.epochs_done == self.epoch:
            if self.raised is not None:
                raise self.raised
            training.should_stop = True


class InterruptWithin(Callback):
    """Sends a signal within an epoch: its rewiring is done and its steps are not."""

    needs_rewirings = True

    def __init__(self, epoch, number):
        self.epoch, self.number = epoch, number

    def on_rewire(self, training, rewirings):
        if training.epochs_done == self.epoch:
            os.kill(os.getpid(), self.number)


class InterruptDuringSteps(Callback):
    """Sends a signal while native code is at work, in epochs long enough to report progress."""

    def __init__(self, number):
        self.number, self.sent = number, False

    def on_progress(self, training, steps_done):
        if training.epochs_done >= 1 and not self.sent:
            self.sent = True
            os.kill(os.getpid(), self.number)


def is_file(descriptor):
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def has_newest(directory, number):
    return CheckpointDirectory(directory).numbers()[-1:] == [number]


def outcome(training):
    losses = training.history.column("loss")
    return network_hash(training.network), training.epochs_done, losses


def finished(directory=None, *, before=(), every=1, how=None, **options):
    callbacks = list(before)
    if directory is not None:
        callbacks.append(Checkpoint(directory, every=every, **options))
    training = a_training(callbacks=callbacks, **(how or {}))
    training.run()
    return training


@pytest.mark.parametrize("adam", [False, True])
@pytest.mark.parametrize("every", [1, 2, 4])
def test_a_stopped_training_resumes_to_the_same_bits(tmp_path, every, adam):
    how = {"adam": adam}
    uninterrupted = outcome(finished(how=how))
    for epoch in (2, 3, 5):
        finished(tmp_path, before=[StopAfter(epoch)], every=every, how=how)
    assert outcome(finished(tmp_path, every=every, how=how)) == uninterrupted


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_resumes_to_the_same_bits(tmp_path, name):
    how = {"evolution": make_strategy(name), "n_epochs": 5}
    uninterrupted = finished(how=how)
    for epoch in (2, 3):
        finished(tmp_path, before=[StopAfter(epoch)], how=how)
    resumed = finished(tmp_path, how=how)
    assert outcome(resumed) == outcome(uninterrupted)
    assert resumed.rewired_by_layer == uninterrupted.rewired_by_layer


def test_checkpoints_change_nothing_in_a_training(tmp_path):
    assert outcome(finished(tmp_path)) == outcome(finished())


def test_early_stopping_resumes_to_the_same_bits(tmp_path):
    def how(patience=3):
        return {"stopping": EarlyStopping(patience=patience, tol=0.0), "n_epochs": 30}

    uninterrupted = finished(how=how())
    assert 3 < uninterrupted.epochs_done < 30, "it must stop by itself"
    for epoch in (1, 2, 3):
        finished(tmp_path, before=[StopAfter(epoch)], how=how())
    resumed = finished(tmp_path, how=how())
    assert outcome(resumed) == outcome(uninterrupted)
    for name in ("best_score", "best_epoch", "n_waited"):
        assert getattr(resumed.stopping, name) == getattr(uninterrupted.stopping, name)
    assert outcome(finished(tmp_path, how=how())) == outcome(uninterrupted), "nothing left to do"


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("raised", [KeyboardInterrupt(), RuntimeError("a bug elsewhere")])
def test_an_exception_leaves_a_checkpoint_of_the_last_completed_epoch(tmp_path, every, raised):
    training = a_training(callbacks=[Checkpoint(tmp_path, every=every), StopAfter(4, raised)])
    with pytest.raises(type(raised)):
        training.run()
    assert CheckpointDirectory(tmp_path).latest()[0] == 4
    assert outcome(finished(tmp_path, every=every)) == outcome(finished())


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
@pytest.mark.parametrize("every", [1, 10])
def test_a_signal_within_an_epoch_leaves_the_last_completed_epoch(tmp_path, number, raised, every):
    with pytest.raises(raised) as found:
        finished(tmp_path, before=[InterruptWithin(3, number)], every=every)
    if number == signal.SIGTERM:
        assert found.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert CheckpointDirectory(tmp_path).latest()[0] == 3
    assert outcome(finished(tmp_path, every=every)) == outcome(finished())


def test_a_signal_while_native_code_runs_leaves_the_last_completed_epoch(tmp_path):
    # Progress is reported every 20 ms, and 20,000 steps take longer than that on any machine.
    how = {"n_samples": 20_000, "n_epochs": 2, "batch_size": 1}
    with pytest.raises(SystemExit):
        finished(tmp_path, before=[InterruptDuringSteps(signal.SIGTERM)], every=10, how=how)
    number, document = CheckpointDirectory(tmp_path).latest()
    assert number == 1
    expected = a_training(**how)
    expected.run(1)
    assert network_hash(document.networks[0]) == network_hash(expected.network)


def test_without_a_snapshot_the_last_checkpoint_is_what_is_left(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        a_training(
            callbacks=[
                Checkpoint(tmp_path, every=3, snapshot=False),
                StopAfter(5, KeyboardInterrupt()),
            ]
        ).run()
    assert CheckpointDirectory(tmp_path).numbers() == [3]
    finished(tmp_path, every=4, snapshot=False)
    assert CheckpointDirectory(tmp_path).numbers() == [4, 6], "the last epoch is always written"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_a_write_leaves_a_complete_file(tmp_path, monkeypatch, number):
    fsync, sent = os.fsync, []

    def interrupted(descriptor):
        if is_file(descriptor) and has_newest(tmp_path, 2) and not sent:
            sent.append(number)
            os.kill(os.getpid(), number)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises((SystemExit, KeyboardInterrupt)):
        finished(tmp_path)
    monkeypatch.undo()
    assert CheckpointDirectory(tmp_path).latest()[0] == 3
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]
    assert outcome(finished(tmp_path)) == outcome(finished())


def test_ctrl_c_again_while_the_last_epoch_is_written_keeps_the_checkpoint_before(
    tmp_path, monkeypatch
):
    fsync, sent = os.fsync, []

    def interrupted(descriptor):
        if is_file(descriptor) and has_newest(tmp_path, 2) and not sent:
            sent.append(descriptor)
            os.kill(os.getpid(), signal.SIGINT)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        finished(tmp_path, before=[InterruptWithin(3, signal.SIGINT)], every=2)
    monkeypatch.undo()
    assert len(sent) == 1, "the second one must come while epoch 3 is written"
    assert CheckpointDirectory(tmp_path).latest()[0] == 2
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]
    assert outcome(finished(tmp_path, every=2)) == outcome(finished())


def test_an_existing_signal_handler_is_not_replaced(tmp_path):
    received = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        finished(tmp_path, before=[InterruptWithin(3, signal.SIGTERM)])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert received == [signal.SIGTERM]


def test_divergence_keeps_the_last_good_state(tmp_path):
    class Explode(Callback):
        def on_epoch_end(self, training, record):
            if training.epochs_done == 3:
                for layer in training.network.layers:
                    layer.weights *= np.float32(1e30)

    checkpoint = Checkpoint(tmp_path, every=1)
    training = a_training(callbacks=[checkpoint, Explode()], n_epochs=9)
    with pytest.raises(DivergenceError):
        training.run()
    number, document = CheckpointDirectory(tmp_path).latest()
    assert number == 3
    assert document.networks[0].is_finite()


# --------------------------------------------------------------------------- refusals to resume


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"learning_rate": 0.5}, r"plan\.learning_rate: 0\.01 there, 0\.5 here"),
        ({"n_epochs": 9}, r"plan\.n_epochs: 6 there, 9 here"),
        ({"batch_size": 5}, r"plan\.batch_size: 8 there, 5 here"),
        ({"adam": True}, r"plan\.optimizer\.class: 'SGD' there, 'Adam' here"),
        ({"n_samples": 41}, r"data\.n_samples: 40 there, 41 here"),
        ({"seed": 1}, r"data\.samples: .* there, .* here"),
        ({"stopping": patient()}, r"stopping: None there, \{'patience': 100"),
    ],
)
def test_another_training_is_refused_with_what_differs(tmp_path, how, message):
    finished(tmp_path, before=[StopAfter(2)])
    with pytest.raises(ResumeError, match=message) as found:
        finished(tmp_path, how=how)
    assert "belongs to another training" in str(found.value)
    assert outcome(finished(tmp_path)) == outcome(finished()), "the right one still resumes"


def test_parameters_of_the_caller_count_too(tmp_path):
    finished(tmp_path, before=[StopAfter(2)], parameters={"target": "Y"})
    with pytest.raises(ResumeError, match=r"parameters\.target: 'Y' there, 'Z' here"):
        finished(tmp_path, parameters={"target": "Z"})


def test_differences_can_be_allowed_by_name(tmp_path):
    finished(tmp_path)
    longer = finished(tmp_path, how={"n_epochs": 8}, allow={"plan.n_epochs"})
    assert longer.epochs_done == 8
    # With a constant schedule the length of the plan changes nothing before it ends.
    assert outcome(longer) == outcome(finished(how={"n_epochs": 8}))


def test_a_used_directory_is_refused_when_not_resuming(tmp_path):
    finished(tmp_path)
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(ResumeError, match="holds checkpoints of a training, up to epoch 6"):
        finished(tmp_path, resume=False)
    assert sorted(os.listdir(tmp_path)) == before


def test_another_network_is_refused(tmp_path):
    finished(tmp_path, before=[StopAfter(2)])
    training = a_training(callbacks=[Checkpoint(tmp_path)])
    training.network.layers[0].dropout = 0.3
    with pytest.raises(ResumeError, match=r"network\.layers\[0\]\.dropout: 0\.2 there, 0\.3 here"):
        training.run()


@pytest.mark.skipif(len(available_isas()) < 2, reason="the processor has one instruction set")
def test_another_instruction_set_resumes_with_a_warning(tmp_path):
    finished(tmp_path, before=[StopAfter(2)])
    with use_isa("baseline"), pytest.warns(CheckpointWarning, match="instruction set"):
        assert finished(tmp_path).epochs_done == 6


def change_config(path, change):
    """Write a checkpoint again with a configuration that was changed."""
    document = read_document(path)
    config = copy.deepcopy(document.config)
    change(config)
    write_document(Document(config, document.arrays, document.networks, "checkpoint"), path)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["progress"].update(epochs_done=5),
        lambda c: c["progress"].update(epochs_done="2"),
        lambda c: c["progress"].update(stopping={}),
        lambda c: c["progress"].update(rewired=[0]),
        lambda c: c["progress"].update(rewired=[0, -1, 0]),
        lambda c: c["progress"].update(evolving=1),
        lambda c: c["progress"].update(seed=3),
        lambda c: c["progress"].pop("cycle"),
        lambda c: c.update(progress=[]),
        lambda c: c.update(isa=1),
        lambda c: c.update(identity=1),
        lambda c: c.update(more=1),
        lambda c: c.clear(),
    ],
)
def test_a_forged_checkpoint_is_refused(tmp_path, change):
    finished(tmp_path, before=[StopAfter(2)])
    change_config(CheckpointDirectory(tmp_path).path_of(2), change)
    with pytest.raises(FormatError, match=r"checkpoint-00000002\.ratoon: "):
        finished(tmp_path)


def test_a_checkpoint_with_unknown_arrays_is_refused(tmp_path):
    finished(tmp_path, before=[StopAfter(2)])
    path = CheckpointDirectory(tmp_path).path_of(2)
    found = read_document(path)
    arrays = {**found.arrays, "more": np.zeros(1)}
    write_document(Document(found.config, arrays, found.networks, "checkpoint"), path)
    with pytest.raises(FormatError, match="unknown arrays"):
        finished(tmp_path)


def flatten(config):
    """Change the content of a checkpoint to the layout without an object `progress`."""
    progress = config.pop("progress")
    stopping = progress["stopping"]
    if stopping is not None:
        stopping = {name: stopping[name] for name in ("best_score", "best_epoch", "n_waited")}
        stopping["has_best"] = config["identity"]["stopping"]["restore_best"]
    kept = {name: progress[name] for name in ("epochs_done", "rewired", "evolving")}
    config.update(kept, stopping=stopping)


@pytest.mark.parametrize("restore_best", [None, True, False])
@pytest.mark.parametrize("strategy", ["set", "dsr"])
def test_a_checkpoint_in_the_earlier_layout_resumes_to_the_same_bits(
    tmp_path, strategy, restore_best
):
    def how():
        stopping = None
        if restore_best is not None:
            # No later epoch exceeds the first by so much: training stops after the seventh.
            stopping = EarlyStopping(patience=6, tol=10.0, restore_best=restore_best)
        return {"stopping": stopping, "evolution": make_strategy(strategy), "n_epochs": 12}

    uninterrupted = finished(how=how())
    assert uninterrupted.epochs_done == (12 if restore_best is None else 7)
    finished(tmp_path, before=[StopAfter(4)], how=how())
    change_config(CheckpointDirectory(tmp_path).path_of(4), flatten)
    resumed = finished(tmp_path, how=how())
    assert outcome(resumed) == outcome(uninterrupted)
    assert resumed.rewired_by_layer == uninterrupted.rewired_by_layer


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(epochs_done=5),
        lambda c: c.update(epochs_done="2"),
        lambda c: c.update(stopping={}),
        lambda c: c.update(stopping={"patience": 9}),
        lambda c: c["identity"].update(stopping=None),
        lambda c: c.update(identity=1),
        lambda c: c.update(isa=1),
        lambda c: c.pop("rewired"),
    ],
)
def test_a_forged_checkpoint_in_the_earlier_layout_is_refused(tmp_path, change):
    def how():
        return {"stopping": patient()}

    finished(tmp_path, before=[StopAfter(2)], how=how())
    path = CheckpointDirectory(tmp_path).path_of(2)
    change_config(path, flatten)
    change_config(path, change)
    with pytest.raises(FormatError, match=r"checkpoint-00000002\.ratoon: "):
        finished(tmp_path, how=how())


# -------------------------------------------------------------------------------- full disks


def test_a_full_disk_gives_a_warning_and_training_continues(tmp_path, monkeypatch):
    fsync, failures = os.fsync, []

    def full(descriptor):
        if is_file(descriptor) and has_newest(tmp_path, 2) and len(failures) < 2:
            failures.append(descriptor)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(CheckpointWarning, match=r"checkpoint of epoch [34] was not .*No space left"):
        training = finished(tmp_path)
    assert len(failures) == 2
    assert outcome(training) == outcome(finished())
    assert CheckpointDirectory(tmp_path).numbers() == [5, 6]


def test_a_full_disk_ends_training_on_request(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SaveError, match="No space left"):
        finished(tmp_path, on_error="raise")
    monkeypatch.undo()
    assert outcome(finished(tmp_path)) == outcome(finished())


# -------------------------------------------------------------------------------------- rest


def test_two_trainings_cannot_use_one_directory(tmp_path):
    class Second(Callback):
        def on_epoch_end(self, training, record):
            with pytest.raises(LockedError, match="in use by this process"):
                finished(tmp_path)

    finished(tmp_path, before=[Second()], how={"n_epochs": 1})


@pytest.mark.parametrize("every", [1, 4])
def test_a_training_whose_directory_was_made_anew_by_another_stops(tmp_path, every):
    folder, trainings = tmp_path / "run", []

    class Replace(Callback):
        def on_epoch_end(self, training, record):
            if training.epochs_done == 2:
                trainings.append(training)
                shutil.rmtree(folder)
                finished(folder, how={"n_epochs": 1})

    with pytest.raises(LockedError, match="deleted or replaced"):
        finished(folder, before=[Replace()], every=every)
    assert trainings[0].epochs_done < 6
    assert CheckpointDirectory(folder).numbers() == [1]


def test_the_directory_is_free_after_a_training_however_it_ended(tmp_path):
    with pytest.raises(RuntimeError):
        finished(tmp_path, before=[StopAfter(2, RuntimeError())])
    with pytest.raises(ResumeError):
        finished(tmp_path, resume=False)
    with CheckpointDirectory(tmp_path):
        pass


def test_single_epochs_continue_without_reading_the_checkpoint(tmp_path, monkeypatch):
    training = a_training(callbacks=[Checkpoint(tmp_path)])
    training.run(1)
    monkeypatch.setattr(CheckpointDirectory, "latest", None)
    for _ in range(5):
        training.run(1)
    assert outcome(training) == outcome(finished())


def test_a_callback_can_be_copied_and_pickled(tmp_path):
    checkpoint = Checkpoint(tmp_path, every=3)
    finished(how={"n_epochs": 1}, before=[checkpoint])
    for again in (copy.deepcopy(checkpoint), pickle.loads(pickle.dumps(checkpoint))):
        assert again.every == 3


def test_impossible_parameters_are_refused(tmp_path):
    with pytest.raises(InvalidParameterError, match="every"):
        Checkpoint(tmp_path, every=0)
    with pytest.raises(InvalidParameterError, match="on_error"):
        Checkpoint(tmp_path, on_error="ignore")
