"""Several ranks train the network that one would train, up to the order of sums."""

import copy
import threading
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ratoon.distributed import SingleRank, ThreadRanks, cost, data_parallel, train_together
from ratoon.errors import InvalidParameterError
from ratoon.evolution import SET
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD, Adam
from ratoon.training import Training, TrainingData, TrainingPlan

OPTIMIZERS = {"momentum": SGD(0.9, weight_decay=0.01), "adam": Adam(weight_decay=0.01)}


def problem():
    rng = np.random.default_rng(0)
    return rng.standard_normal((50, 40)), np.eye(3)[rng.integers(0, 3, 50)], rng.uniform(1, 2, 50)


def trained(optimizer, communicator=None, *, average_every=None, n_epochs=4, start=None):
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
    )
    training = Training(network, TrainingData.of(x, y, np.float64, weights=weights), plan)
    if communicator is None:
        training.run()
    else:
        with train_together(communicator, average_every=average_every):
            training.run()
    return training


@pytest.mark.parametrize("n_ranks", [1, 2, 3])
@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
def test_ranks_with_shares_of_the_batch_train_the_network_of_one_rank(optimizer, n_ranks):
    alone = trained(optimizer)
    together = ThreadRanks(n_ranks).run(lambda ranks: trained(optimizer, ranks))
    for training in together:
        for one, other in zip(alone.network.layers, training.network.layers, strict=True):
            assert_array_equal(one.topology.packed, other.topology.packed)
            # Sums of 12 products in another order, over 20 steps in float64.
            assert_allclose(one.weights, other.weights, rtol=1e-8, atol=1e-11)
        assert_allclose(alone.history.column("loss"), training.history.column("loss"), rtol=1e-8)


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


def test_one_rank_needs_nobody():
    training = trained(OPTIMIZERS["momentum"], SingleRank())
    assert len(training.history) == 4


@pytest.mark.parametrize("every", [0, "often"])
def test_other_ways_to_train_together_are_refused(every):
    with pytest.raises(InvalidParameterError, match="average_every"):
        trained(OPTIMIZERS["momentum"], SingleRank(), average_every=every)


@pytest.mark.parametrize(("sending", "same_as"), [(0.001, None), (0.01, 3)])
def test_what_sending_costs_chooses_between_gradients_and_averages(monkeypatch, sending, same_as):
    told = threading.local()  # every rank is a thread

    def seconds(run):
        run()
        told.seconds = getattr(told, "seconds", [0.0028, sending])
        return told.seconds.pop(0)

    monkeypatch.setattr(data_parallel, "best_seconds", seconds)
    monkeypatch.setattr(cost, "LEAST", 2.4)
    chosen, given = (
        ThreadRanks(2).run(partial(trained, OPTIMIZERS["momentum"], average_every=every))
        for every in ("auto", same_as)
    )
    for one, other in zip(chosen, given, strict=True):
        for a, b in zip(one.network.layers, other.network.layers, strict=True):
            assert_array_equal(a.weights, b.weights)
