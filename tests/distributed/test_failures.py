"""A rank that fails, or differs from the others, ends the training of all ranks."""

import numpy as np
import pytest

from ratoon.distributed import (
    DataParallel,
    Follow,
    RankFailedError,
    SingleRank,
    ThreadRanks,
    train_together,
)
from ratoon.distributed.watched import WatchedRanks
from ratoon.errors import InvalidParameterError, RatoonError
from ratoon.network import SparseMLP
from ratoon.optimizers import Adam
from ratoon.training import Callback, EarlyStopping, Training, TrainingData, TrainingPlan
from tests.storage.cases import a_training

LIMIT = 10  # seconds after which a rank that waits for another one gives up
RANKS = pytest.mark.parametrize("n_ranks", [2, 4])


class At(Callback):
    """Runs an action where it is asked to, on one rank."""

    def __init__(self, place, action):
        self.place = place
        self.action = action
        self.ended = 0

    def on_fit_begin(self, training):
        if self.place == "begin":
            self.action(training)

    def on_epoch_end(self, training, record):
        if self.place == "epoch" and training.epochs_done == 2:
            self.action(training)

    def on_fit_end(self, training):
        self.ended += 1


def outcomes(n_ranks, make):
    """Return what every rank has raised, or the number of epochs it has trained."""

    def work(ranks):
        try:
            training = make(ranks)
            training.run()
        except BaseException as error:
            return error
        return training.epochs_done

    return ThreadRanks(n_ranks, timeout=LIMIT).run(work)


def raises(error):
    def action(training):
        raise error

    return action


@RANKS
@pytest.mark.parametrize("every", [None, 2, "auto"])
@pytest.mark.parametrize("place", ["begin", "epoch"])
@pytest.mark.parametrize(
    "error", [RuntimeError("no"), KeyboardInterrupt(), SystemExit(143)], ids=type
)
def test_an_error_in_a_callback_of_one_rank_ends_all(n_ranks, place, error, every):
    def make(ranks):
        failing = [At(place, raises(error))] if ranks.rank == 1 else []
        return a_training(callbacks=[*failing, DataParallel(ranks, every)])

    found = outcomes(n_ranks, make)
    assert found.pop(1) is error
    message = f"{type(error).__name__}: {error}".removesuffix(": ")
    for other in found:
        assert isinstance(other, RankFailedError)
        assert str(other) == f"rank 1 of {n_ranks} failed: {message}"


@pytest.mark.filterwarnings("ignore:train_together")  # deprecated
def test_train_together_ends_all_ranks_too():
    def work(ranks):
        failing = [At("epoch", raises(RuntimeError("no")))] if ranks.rank == 1 else []
        training = a_training(callbacks=[Follow(ranks), *failing])
        with (
            train_together(ranks, average_every=None),
            pytest.raises(RankFailedError if ranks.rank == 0 else RuntimeError, match="no"),
        ):
            training.run()
        return training.epochs_done

    assert ThreadRanks(2, timeout=LIMIT).run(work) == [2, 2]


@pytest.mark.filterwarnings("ignore:train_together")  # deprecated
def test_train_together_refuses_ranks_that_differ():
    def work(ranks):
        training = differing(ranks.rank, name="seed", value=7)
        with (
            train_together(ranks, average_every=None),
            pytest.raises(InvalidParameterError, match=r"plan\.seed: 0 on rank 0, 7 on rank 1"),
        ):
            training.run()

    ThreadRanks(2, timeout=LIMIT).run(work)


def test_an_error_in_the_validation_of_one_rank_ends_all():
    def make(ranks):
        training = a_training(callbacks=[DataParallel(ranks, None)])
        training.validation = training.data
        if ranks.rank == 0:
            training.scorer = lambda outputs, data: 1 / 0
        return training

    first, other = outcomes(2, make)
    assert isinstance(first, ZeroDivisionError)
    assert str(other) == "rank 0 of 2 failed: ZeroDivisionError: division by zero"


def test_ranks_that_fail_at_the_same_time_raise_their_own_errors():
    def make(ranks):
        error = RuntimeError(f"number {ranks.rank}")
        return a_training(callbacks=[DataParallel(ranks, None), At("epoch", raises(error))])

    assert [str(error) for error in outcomes(2, make)] == ["number 0", "number 1"]


def test_ranks_can_train_again_after_a_failure():
    def work(ranks):
        together = DataParallel(ranks, None)
        failing = [At("epoch", raises(RuntimeError("no")))] if ranks.rank == 1 else []
        with pytest.raises(RankFailedError if ranks.rank == 0 else RuntimeError):
            a_training(callbacks=[*failing, together]).run()
        training = a_training(callbacks=[together])
        training.run()
        return training.epochs_done

    assert ThreadRanks(2, timeout=LIMIT).run(work) == [6, 6]


@RANKS
@pytest.mark.parametrize("place", ["begin", "epoch"])
@pytest.mark.parametrize("is_first", [True, False])
def test_one_rank_stops_all_after_the_same_epoch(n_ranks, place, is_first):
    def stop(training):
        training.should_stop = True

    def make(ranks):
        callbacks = [DataParallel(ranks, None)]
        if ranks.rank == 1:
            callbacks.insert(0 if is_first else 1, At(place, stop))
        return a_training(callbacks=callbacks)

    assert outcomes(n_ranks, make) == [0 if place == "begin" else 2] * n_ranks


def test_early_stopping_on_one_rank_stops_all():
    def make(ranks):
        def scorer(outputs, data):
            return 0.0 if ranks.rank == 1 else float(training.epochs_done)

        stopping = EarlyStopping(patience=2)
        training = a_training(callbacks=[DataParallel(ranks, None)], stopping=stopping)
        training.validation, training.scorer = training.data, scorer
        return training

    assert outcomes(2, make) == [3, 3]


def differing(rank, *, name, value):
    """Return a training whose part of this name has another value on rank 1."""
    rng = np.random.default_rng(0)
    given = {"n_samples": 40, "hidden": 12, "cell": 0.0, "target": 0.0, "weight": 1.0}
    plan = {"n_epochs": 3, "seed": 0, "batch_size": 8, "learning_rate": 0.01, "optimizer": Adam()}
    given.update(plan)
    if rank == 1:
        given[name] = value
    x, targets = rng.normal(size=(40, 10)), np.eye(3)[rng.integers(3, size=40)]
    x[-1, -1] += given["cell"]
    targets[0, 0] += given["target"]
    weights = np.full(40, given["weight"])
    n = given["n_samples"]
    return Training(
        SparseMLP.start((10, given["hidden"], 3), density=0.5, seed=0),
        TrainingData.of(x[:n], targets[:n], np.float32, weights=weights[:n]),
        TrainingPlan(**{key: given[key] for key in plan}),
    )


@RANKS
@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("n_samples", 39, "data.n_samples: 40 on {others}, 39 on rank 1"),
        ("hidden", 13, "network.widths: [10, 12, 3] on {others}, [10, 13, 3] on rank 1"),
        ("n_epochs", 4, "plan.n_epochs: 3 on {others}, 4 on rank 1"),
        ("seed", 7, "plan.seed: 0 on {others}, 7 on rank 1"),
        ("batch_size", 9, "plan.batch_size: 8 on {others}, 9 on rank 1"),
        ("learning_rate", 0.02, "plan.learning_rate: 0.01 on {others}, 0.02 on rank 1"),
        (
            "optimizer",
            Adam(weight_decay=0.5),
            "plan.optimizer.weight_decay: 0.0 on {others}, 0.5 on rank 1",
        ),
        ("cell", 1.0, "data.samples: hash "),
        ("target", 1.0, "data.targets: hash "),
        ("weight", 2.0, "data.weights: hash "),
    ],
)
def test_ranks_that_differ_raise_the_same_message(n_ranks, name, value, shown):
    def make(ranks):
        training = differing(ranks.rank, name=name, value=value)
        training.callbacks = [DataParallel(ranks, None)]
        return training

    found = outcomes(n_ranks, make)
    assert all(isinstance(error, InvalidParameterError) for error in found), found
    assert len(set(map(str, found))) == 1
    others = "rank 0" if n_ranks == 2 else "ranks 0, 2, 3"
    assert "\n  " + shown.format(others=others) in str(found[0])


def test_ranks_with_other_averages_are_refused():
    def make(ranks):
        return a_training(callbacks=[DataParallel(ranks, 2 + ranks.rank)])

    for error in outcomes(2, make):
        assert "settings.average_every: 2 on rank 0, 3 on rank 1" in str(error)


def test_ranks_that_run_for_other_numbers_of_epochs_are_refused():
    def work(ranks):
        training = a_training(callbacks=[DataParallel(ranks, None)])
        with pytest.raises(InvalidParameterError, match=r"rank 1 is at epoch 0 of 2"):
            training.run(1 + ranks.rank)

    ThreadRanks(2, timeout=LIMIT).run(work)


def test_a_rank_interrupted_within_an_operation_ends_the_process():
    class Interrupted(SingleRank):
        size = 2
        aborted = None

        def add(self, values):
            raise KeyboardInterrupt

        def abort(self, message):
            self.aborted = message

    communicator = Interrupted()
    ranks = WatchedRanks(communicator)
    with pytest.raises(KeyboardInterrupt) as caught:
        ranks.add(np.zeros(1))
    ranks.fail(caught.value)
    assert communicator.aborted is None, "callbacks write checkpoints first"
    ranks.finish()
    assert communicator.aborted == "KeyboardInterrupt"


def test_callbacks_that_have_begun_end_when_a_later_one_cannot_begin():
    begun, failing = At("never", None), At("begin", raises(RatoonError("no")))
    with pytest.raises(RatoonError, match="no"):
        a_training(callbacks=[begun, failing]).run()
    assert (begun.ended, failing.ended) == (1, 0)


@RANKS
@pytest.mark.parametrize("step", [0, 3, 4, 9])  # of 5 in an epoch
def test_an_error_within_a_step_of_one_rank_ends_all(n_ranks, step):
    class Failing(DataParallel):
        def _gradients(self, training, native, rows, number, flat):
            if self.communicator.rank == 1 and number == step:
                raise MemoryError("no room")
            return super()._gradients(training, native, rows, number, flat)

    found = outcomes(n_ranks, lambda ranks: a_training(callbacks=[Failing(ranks, None)]))
    assert isinstance(found.pop(1), MemoryError)
    for other in found:
        assert str(other) == f"rank 1 of {n_ranks} failed: MemoryError: no room"


@pytest.mark.parametrize("step", [0, 3, 4])
def test_ranks_can_train_again_after_an_error_within_a_step(step):
    class Failing(DataParallel):
        should_fail = True

        def _gradients(self, training, native, rows, number, flat):
            if self.communicator.rank == 1 and number == step and self.should_fail:
                raise MemoryError("no room")
            return super()._gradients(training, native, rows, number, flat)

    def work(ranks):
        together = Failing(ranks, None)
        with pytest.raises(RankFailedError if ranks.rank == 0 else MemoryError):
            a_training(callbacks=[together]).run()
        together.should_fail = False
        training = a_training(callbacks=[together])
        training.run()
        return training.epochs_done

    assert ThreadRanks(2, timeout=LIMIT).run(work) == [6, 6]
