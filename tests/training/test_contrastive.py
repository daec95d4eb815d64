"""Boltzmann machines train under every strategy, which keep what they promise."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.boltzmann import BoltzmannMachine
from ratoon.errors import DivergenceError
from ratoon.evolution import SET, SNFS, STRATEGIES, RigL, Static
from ratoon.layers import make_layer
from ratoon.optimizers import SGD, Adam
from ratoon.training import TrainingPlan
from ratoon.training.contrastive import ContrastiveTraining

X = (np.random.default_rng(0).random((24, 30)) < 0.3).astype(np.float32)


def trained(strategy, *, n_epochs=5, optimizer=None, learning_rate=0.1, n_threads=1, run=None):
    layer = make_layer((30, 20), density=0.2, init="set", seed=0)
    plan = TrainingPlan(
        optimizer=optimizer or SGD(),
        learning_rate=learning_rate,
        batch_size=5,
        n_epochs=n_epochs,
        evolution=strategy,
        n_threads=n_threads,
    )
    training = ContrastiveTraining(BoltzmannMachine.of(layer, n_threads=n_threads), plan)
    for _ in range(n_epochs if run is None else run):
        training.run_epoch(lambda rows: X[rows].T, len(X))
    return training


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_rewires_a_machine(name):
    training = trained(STRATEGIES[name](), n_epochs=6)
    layer = training.machine.layer
    assert np.isfinite(layer.weights).all()
    assert layer.weights.size == layer.state[0].size == layer.n_connections
    if name != "nest":  # which follows a curve
        assert layer.n_connections == (12 if name in ("granet", "chtss") else 120)


def test_set_replaces_after_every_epoch_but_the_last():
    training = trained(SET(0.3), n_epochs=4)
    rewired = training.history.column("rewired")
    assert rewired[0] == 0
    # A fraction of each sign, rounded on its own.
    assert all(abs(count - 36) <= 1 for count in rewired[1:])
    assert training.machine.layer.n_connections == 120


@pytest.mark.parametrize("strategy", [RigL(every=3), SNFS()], ids=repr)
def test_growth_by_gradient_takes_that_of_the_next_step(strategy):
    training = trained(strategy, n_epochs=4)
    assert sum(training.history.column("rewired")) > 0


def test_in_place_and_general_rewiring_are_the_same(monkeypatch):
    quick = trained(SET()).machine.layer
    monkeypatch.setattr("ratoon.training.contrastive.InPlaceStrategy", ())
    general = trained(SET()).machine.layer
    assert quick.topology == general.topology
    assert_array_equal(quick.weights, general.weights)
    assert_array_equal(quick.state[0], general.state[0])


@pytest.mark.parametrize("optimizer", [SGD(0.0), SGD(0.5), Adam()], ids=repr)
def test_reconstructions_become_better(optimizer):
    rate = 0.01 if isinstance(optimizer, Adam) else 0.2
    training = trained(SET(), n_epochs=30, optimizer=optimizer, learning_rate=rate)
    losses = training.history.column("loss")
    assert losses[-1] < 0.8 * losses[0]


def test_the_number_of_threads_changes_nothing():
    one, three = (trained(SET(), n_threads=n).machine.layer for n in (1, 3))
    assert one.topology == three.topology
    assert_array_equal(one.weights, three.weights)


def test_training_can_continue_beyond_its_plan():
    training = trained(SET(), n_epochs=2, run=5)
    assert training.epochs_done == 5
    assert training.history[-1].rewired > 0


def test_divergence_raises_an_error():
    with pytest.raises(DivergenceError, match="try a tenth"):
        trained(Static(), learning_rate=1e38, optimizer=SGD(0.9))
