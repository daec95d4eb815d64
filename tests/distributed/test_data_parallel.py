"""Several ranks train the network that one would train, up to the order of sums."""

import copy
import threading
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ratoon import Augment, SparseMLPClassifier
from ratoon.distributed import (
    DataParallel,
    Follow,
    SingleRank,
    ThreadRanks,
    cost,
    data_parallel,
    train_together,
)
from ratoon.errors import InvalidParameterError
from ratoon.evolution import SET
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD, Adam
from ratoon.storage import Checkpoint
from ratoon.training import EarlyStopping, Training, TrainingData, TrainingPlan
from tests.storage.cases import a_training, network_hash

OPTIMIZERS = {
    "momentum": SGD(0.9, weight_decay=0.01),
    "released decay": SGD(0.9, weight_decay=0.01, decay="released"),
    "adam": Adam(weight_decay=0.01),
}


def problem():
    rng = np.random.default_rng(0)
    return rng.standard_normal((50, 40)), np.eye(3)[rng.integers(0, 3, 50)], rng.uniform(1, 2, 50)


def trained(
    optimizer, communicator=None, *, average_every=None, n_epochs=4, start=None, augment=None
):
    x, y, weights = problem()
    network = copy.deepcopy(start) or SparseMLP.start(
        (40, 60, 3), epsilon=4, seed=0, dtype=np.float64
    )
    plan = TrainingPlan(
        optimizer=optimizer,
        learning_rate=0.01,
        batch_size=12,
        n_epochs=n_epochs,
        evolution=SET(0.3),
        seed=3,
        augment=augment,
    )
    callbacks = [] if communicator is None else [DataParallel(communicator, average_every)]
    data = TrainingData.of(x, y, np.float64, weights=weights)
    training = Training(network, data, plan, callbacks=callbacks)
    training.run()
    return training


@pytest.mark.parametrize("n_ranks", [1, 2, 3])
@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
def test_ranks_with_parts_of_the_batch_train_the_network_of_one_rank(optimizer, n_ranks):
    alone = trained(optimizer)
    together = ThreadRanks(n_ranks).run(lambda ranks: trained(optimizer, ranks))
    for training in together:
        for one, other in zip(alone.network.layers, training.network.layers, strict=True):
            assert_array_equal(one.topology.packed, other.topology.packed)
            # Sums of 12 products in another order, over 20 steps in float64.
            assert_allclose(one.weights, other.weights, rtol=1e-8, atol=1e-11)
            assert_allclose(one.bias, other.bias, rtol=1e-8, atol=1e-11)
        assert_allclose(alone.history.column("loss"), training.history.column("loss"), rtol=1e-8)


def test_ranks_augment_images_as_one_rank_does():
    augment = Augment((5, 8), 2, flip=True)
    alone = trained(OPTIMIZERS["momentum"], augment=augment)
    assert alone.history[-1].loss != trained(OPTIMIZERS["momentum"]).history[-1].loss
    together = ThreadRanks(2).run(
        lambda ranks: trained(OPTIMIZERS["momentum"], ranks, augment=augment)
    )
    for training in together:
        for one, other in zip(alone.network.layers, training.network.layers, strict=True):
            # Sums of 12 products in another order, over 20 steps in float64.
            assert_allclose(one.weights, other.weights, rtol=1e-8, atol=1e-11)


def test_all_ranks_hold_the_same_bits():
    a, b = ThreadRanks(2).run(lambda ranks: trained(OPTIMIZERS["momentum"], ranks))
    for one, other in zip(a.network.layers, b.network.layers, strict=True):
        assert_array_equal(one.weights, other.weights)
        assert_array_equal(one.state[0], other.state[0])
        assert one.topology == other.topology


def test_local_steps_are_averaged_and_still_learn():
    a, b = ThreadRanks(2).run(
        lambda ranks: trained(OPTIMIZERS["momentum"], ranks, average_every=2, n_epochs=12)
    )
    assert_array_equal(a.network.layers[0].weights, b.network.layers[0].weights)
    assert a.history[-1].loss < 0.7 * a.history[0].loss


def test_a_rank_that_fails_ends_all():
    def work(ranks):
        if ranks.rank == 1:
            raise RuntimeError("out of cheese")
        return trained(OPTIMIZERS["momentum"], ranks)

    with pytest.raises(RuntimeError, match="out of cheese"):
        ThreadRanks(2, timeout=20).run(work)


def test_one_rank_trains_alone():
    training = trained(OPTIMIZERS["momentum"], SingleRank())
    assert len(training.history) == 4


@pytest.mark.parametrize("every", [0, "often"])
def test_invalid_intervals_of_averaging_are_refused(every):
    with pytest.raises(InvalidParameterError, match="average_every"):
        trained(OPTIMIZERS["momentum"], SingleRank(), average_every=every)


@pytest.mark.parametrize(("sending", "same_as"), [(0.001, None), (0.01, 3)])
def test_the_cost_of_sending_decides_between_gradients_and_averages(monkeypatch, sending, same_as):
    of_rank = threading.local()  # every rank is a thread

    def seconds(run):
        run()
        of_rank.seconds = getattr(of_rank, "seconds", [0.0028, sending])
        return of_rank.seconds.pop(0)

    monkeypatch.setattr(data_parallel, "best_seconds", seconds)
    monkeypatch.setattr(cost, "AVERAGING_COST", 2.4)
    chosen, given = (
        ThreadRanks(2).run(partial(trained, OPTIMIZERS["momentum"], average_every=every))
        for every in ("auto", same_as)
    )
    for one, other in zip(chosen, given, strict=True):
        for a, b in zip(one.network.layers, other.network.layers, strict=True):
            assert_array_equal(a.weights, b.weights)


@pytest.mark.parametrize("interrupted_after", [2, 5])
def test_all_ranks_resume_from_the_checkpoint_of_rank_0(tmp_path, interrupted_after):
    def how():
        return {"stopping": EarlyStopping(patience=3, tol=0.0), "n_epochs": 30}

    def finished(ranks, folder):
        callbacks = [DataParallel(ranks, None)]
        if ranks.rank == 0:
            callbacks.insert(0, Checkpoint(folder))
        training = a_training(callbacks=callbacks, **how())
        training.run(restore_best=False)
        return training

    whole = ThreadRanks(2).run(partial(finished, folder=tmp_path / "whole"))[0]
    assert interrupted_after < whole.epochs_done < 30, "it must stop by itself"

    def first_part(ranks):
        callbacks = [Checkpoint(tmp_path / "run")] if ranks.rank == 0 else []
        training = a_training(callbacks=[*callbacks, DataParallel(ranks, None)], **how())
        training.run(interrupted_after, restore_best=False)

    ThreadRanks(2).run(first_part)
    resumed = ThreadRanks(2).run(partial(finished, folder=tmp_path / "run"))
    for training in resumed:
        assert training.epochs_done == whole.epochs_done
        assert training.rewired_by_layer == whole.rewired_by_layer
        assert training.history.column("loss") == whole.history.column("loss")
        assert network_hash(training.network) == network_hash(whole.network)
        best = training.stopping.best_network
        assert network_hash(best) == network_hash(whole.stopping.best_network)
        assert training.stopping.n_waited == whole.stopping.n_waited


def test_an_estimator_trains_with_other_ranks_by_a_callback():
    x, y, _ = problem()

    def fitted(ranks=None):
        callbacks = None if ranks is None else DataParallel(ranks, None)
        model = SparseMLPClassifier((9,), max_iter=3, random_state=0, callbacks=callbacks)
        return model.fit(x, y.argmax(axis=1))

    alone = fitted()
    for model in ThreadRanks(2).run(fitted):
        assert_allclose(model.loss_curve_, alone.loss_curve_, rtol=1e-4)
        assert model.n_iter_ == 3


class Counting(SingleRank):
    def __init__(self):
        self.n_sums = 0

    def add(self, values):
        self.n_sums += 1


def test_train_together_still_works_and_warns():
    x, y, _ = problem()
    ranks = Counting()
    model = SparseMLPClassifier((9,), max_iter=3, random_state=0, callbacks=Follow(ranks))
    with (
        pytest.warns(DeprecationWarning, match=r"callbacks=\[DataParallel\(communicator\)\]"),
        train_together(ranks, average_every=None) as runner,
    ):
        model.fit(x, y.argmax(axis=1))
    assert runner.communicator is ranks
    n_sums = ranks.n_sums
    assert n_sums >= 3
    model.fit(x, y.argmax(axis=1))
    assert ranks.n_sums == n_sums, "outside of the block training is alone again"


def test_two_runners_for_one_training_are_refused():
    two = [DataParallel(SingleRank()), DataParallel(SingleRank())]
    training = a_training(callbacks=two)
    with pytest.raises(InvalidParameterError, match="2 runners"):
        training.run()
