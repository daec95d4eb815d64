"""Layers that have all their connections: who rewires them, and who is warned."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from ratoon import SparseMLPClassifier
from ratoon.boltzmann import BoltzmannMachine
from ratoon.errors import InvalidParameterError
from ratoon.estimators.rbm import SparseBernoulliRBM
from ratoon.evolution import (
    SET,
    Clock,
    LayerwiseStrategy,
    NeST,
    NeuronPruning,
    RewiringHasNoEffectWarning,
    RewiringSchedule,
    RigL,
    Static,
    keeps_of,
    promised,
    warn_if_all_full,
)
from ratoon.evolution.contrib.nest import pruned
from ratoon.network import SparseMLP
from ratoon.training import Training, TrainingData, TrainingPlan
from tests.evolution.cases import network

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 6))
Y = (X[:, 0] > 0).astype(int)


@dataclass(frozen=True)
class HalfEachTime(LayerwiseStrategy):
    """Prune half of the connections of every layer, also of full ones."""

    schedule = RewiringSchedule()
    keeps = "fewer"
    rewires_full_layers = True

    def rewire_layer(self, layer, clock, seed):
        return pruned(layer, layer.topology.n_connections // 2)


def small(**changes):
    given = {"hidden_layer_sizes": (5,), "solver": "sgd", "max_iter": 4, "random_state": 0}
    return SparseMLPClassifier(**{**given, **changes})


@pytest.mark.parametrize("evolution", ["rigl", "set", SET(zeta=0.1), "dsr"])
def test_a_fit_warns_once_if_every_layer_is_full(evolution):
    with pytest.warns(RewiringHasNoEffectWarning, match="changes nothing; set `density`") as found:
        small(density=1.0, evolution=evolution).fit(X, Y)
    assert len(found) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"density": 0.5, "evolution": "rigl"},
        {"density": 1.0, "evolution": "static"},
        {"density": 1.0},
        {"density": 1.0, "evolution": NeuronPruning(warm_up=0.0)},
        {"density": 1.0, "evolution": NeST(final=0.5)},
        {"density": 1.0, "evolution": HalfEachTime()},
        # Only the output layer is full.
        {"topology": ["first", None], "density": 1.0, "evolution": "set"},
    ],
    ids=str,
)
def test_a_fit_does_not_warn_if_a_layer_can_be_rewired(changes):
    if "topology" in changes:
        from ratoon.topology import Topology

        changes = {**changes, "topology": [Topology.random((6, 5), 10, seed=0), None]}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RewiringHasNoEffectWarning)
        small(**changes).fit(X, Y)


def test_partial_fits_warn_in_the_first_epoch_only():
    model = small(density=1.0, evolution="rigl")
    with pytest.warns(RewiringHasNoEffectWarning):
        model.partial_fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RewiringHasNoEffectWarning)
        model.partial_fit(X, Y)


def test_a_full_boltzmann_machine_warns_once():
    with pytest.warns(RewiringHasNoEffectWarning, match="RigL changes nothing") as found:
        SparseBernoulliRBM(4, density=1.0, evolution="rigl", n_iter=3).fit(X > 0)
    assert len(found) == 1


@pytest.mark.parametrize("strategy", [HalfEachTime(), NeST(final=0.25, prune_until=0.9)], ids=repr)
def test_a_strategy_that_declares_it_prunes_a_dense_network_in_training(strategy):
    model = small(density=1.0, evolution=strategy, max_iter=10).fit(X, Y)
    for layer in model.network_.layers:
        assert layer.n_connections < layer.topology.n_positions / 2 + 1


def test_a_strategy_that_declares_it_prunes_a_full_boltzmann_machine():
    machine = SparseBernoulliRBM(4, density=1.0, evolution=HalfEachTime(), n_iter=3).fit(X > 0)
    found = vars(machine)["_training"].machine
    assert isinstance(found, BoltzmannMachine)
    assert found.layer.n_connections < 12


def test_nest_rewires_full_layers_if_it_ends_with_fewer_connections():
    assert NeST(final=0.9).rewires_full_layers
    assert not NeST().rewires_full_layers


def test_a_strategy_that_cannot_rewire_full_layers_is_not_called_for_them():
    start = SparseMLP.start((6, 5, 2), density=1.0, seed=0)
    data = TrainingData.of(X, np.eye(2)[Y], start.dtype)
    training = Training(start, data, TrainingPlan(n_epochs=3, evolution=RigL(every=1)))
    training.run()
    assert training.history.column("rewired") == [0, 0, 0]


def test_a_limit_that_is_full_counts_as_full():
    layer = network()[0]
    limited = [type(layer)(layer.topology, layer.weights, allowed=layer.topology)]
    with pytest.warns(RewiringHasNoEffectWarning):
        warn_if_all_full(SET(), limited)
    warn_if_all_full(SET(), [layer, *limited])  # the other can be rewired
    warn_if_all_full(Static(), limited)  # never rewires


def test_the_budget_of_nest_is_its_curve():
    start, clock = network(density=0.2), Clock(40, 10, 100)
    counts = [layer.topology.n_connections for layer in start]
    nest = NeST(peak=2.0, grow_until=0.4)
    assert promised(nest, start, clock) == [2 * count for count in counts]
    assert promised(nest, network(density=0.9), clock) == [
        layer.topology.n_positions for layer in start
    ]


def test_an_unknown_promise_is_refused():
    class Unknown(HalfEachTime):
        keeps = "some"

    with pytest.raises(InvalidParameterError, match=r"`keeps` must be one of \('layer'"):
        keeps_of(Unknown())
