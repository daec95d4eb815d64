"""The contract of every strategy.  Registered strategies are tested here automatically."""

from dataclasses import replace

import pytest

from ratoon.evolution import STRATEGIES, InPlaceStrategy, keeps_of
from ratoon.testing import parametrize_with_checks
from ratoon.topology import Topology
from tests.evolution.cases import evolve, network

# Settings under which a strategy has something to do at once.
EAGER = {
    "guided_set": {"until": 1.0, "anneal": "constant"},
    "dsr": {"threshold": 0.3},
    "neuron_pruning": {"warm_up": 0.0, "prune_every": 1},
    "snfs": {"max_columns": 16},
    "neurofs": {"n_features": 20},
}
# Where nothing is listed, every layer keeps its number of connections.
KEEPS = {"snfs": "total", "dsr": "total", "deep_r": "total", "nest": "budget", "chtss": "budget"}
KEEPS |= {"neuron_pruning": "fewer", "granet": "budget", "neurofs": "fewer"}


@pytest.fixture(params=STRATEGIES)
def name(request):
    return request.param


@pytest.fixture
def strategy(name):
    return STRATEGIES[name](**EAGER.get(name, {}))


@parametrize_with_checks([make(**EAGER.get(name, {})) for name, make in STRATEGIES.items()])
def test_registered_strategies_pass_every_check(strategy, check):
    check(strategy)


@parametrize_with_checks([STRATEGIES[name] for name in EAGER])
def test_registered_strategies_pass_every_check_with_their_defaults(strategy, check):
    check(strategy)


def test_strategies_promise_what_their_papers_promise(name, strategy):
    assert keeps_of(strategy) == KEEPS.get(name, "layer")


def test_every_strategy_but_those_that_only_prune_grows_connections(name, strategy):
    n_grown = sum(r.n_grown for step in evolve(strategy, network()) for r in step.rewirings)
    assert (n_grown > 0) == (name not in ("static", "neuron_pruning"))


def test_pruning_of_neurons_removes_connections():
    pruning = STRATEGIES["neuron_pruning"](**EAGER["neuron_pruning"])
    for step in evolve(pruning, network()):
        after = sum(rewiring.topology.n_connections for rewiring in step.rewirings)
        assert after < sum(layer.topology.n_connections for layer in step.layers)


@pytest.mark.parametrize("name", ["rigl", "static", "nest"])  # nothing is drawn there
def test_a_limit_that_allows_everything_gives_the_same_connections(strategy):
    free = network()
    unlimited = [replace(layer, allowed=Topology.full(layer.topology.shape)) for layer in free]
    runs = [evolve(strategy, layers, n_rewirings=1) for layers in (unlimited, free)]
    for ours, theirs in zip(*runs, strict=True):
        for a, b in zip(ours.rewirings, theirs.rewirings, strict=True):
            assert a.topology == b.topology


def test_set_is_checked_in_place():
    assert isinstance(STRATEGIES["set"](), InPlaceStrategy)


def test_strategies_with_equal_parameters_are_equal(strategy):
    assert repr(strategy).startswith(type(strategy).__name__)
    assert strategy == replace(strategy)
    assert hash(strategy) == hash(replace(strategy))
