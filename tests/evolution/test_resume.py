"""Training with every strategy: stopping, threads and callbacks change no bit."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.evolution import (
    DSR,
    GSE,
    SNFS,
    STRATEGIES,
    DeepR,
    GuidedSET,
    InPlaceStrategy,
    NeST,
    NeuronPruning,
    RigL,
    SRigL,
)
from ratoon.network import SparseMLP
from ratoon.optimizers import SGD, Adam
from ratoon.training import Callback, Training, TrainingData, TrainingPlan, TrainingState

# Short intervals, so that every strategy acts several times within six short epochs.
BUSY = {
    "guided_set": GuidedSET(every=100, until=1.0),
    "rigl": RigL(every=5),
    "srigl": SRigL(every=5),
    "gse": GSE(every=5),
    "dsr": DSR(every=5, threshold=0.05),
    "deep_r": DeepR(alpha=0.01, temperature=1e-4),
    "snfs": SNFS(max_columns=None),
    "snfs, low rank": SNFS(max_columns=12),
    "nest": NeST(),
    "neuron_pruning": NeuronPruning(warm_up=0.3, prune_every=2),
}
ALL = {name: make() for name, make in STRATEGIES.items() if name not in BUSY} | BUSY


@pytest.fixture(params=ALL)
def strategy(request):
    return ALL[request.param]


class Listener(Callback):
    needs_rewirings = True

    def __init__(self):
        self.grown = []

    def on_rewire(self, training, rewirings):
        self.grown.append([rewiring.n_grown for rewiring in rewirings])


def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(37, 30)).astype(np.float32)
    y = np.eye(3, dtype=np.float32)[rng.integers(3, size=37)]
    return TrainingData.of(x, y, np.float32)


def start():
    return SparseMLP.start((30, 40, 20, 3), density=0.2, dropout=0.1, seed=1)


def training(strategy, network, *, n_threads=1, optimizer=None, **more):
    plan = TrainingPlan(
        optimizer=optimizer or SGD(),
        learning_rate=0.05,
        batch_size=5,
        n_epochs=6,
        evolution=strategy,
        seed=3,
        n_threads=n_threads,
    )
    return Training(network, data(), plan, **more)


def assert_same_network(ours, theirs):
    for one, other in zip(ours.layers, theirs.layers, strict=True):
        assert one.topology == other.topology
        assert_array_equal(one.weights, other.weights)
        assert_array_equal(one.bias, other.bias)
        for a, b in zip(one.state, other.state, strict=True):
            assert_array_equal(a, b)


@pytest.mark.parametrize(
    "optimizer", [SGD(), SGD(momentum=0.0), Adam()], ids=["sgd", "plain", "adam"]
)
def test_stopping_and_resuming_after_any_epoch_changes_no_bit(strategy, optimizer):
    whole = training(strategy, start(), optimizer=optimizer)
    whole.run()
    network, memory, epochs_done = start(), None, 0
    for n_epochs in (1, 2, 3):
        state = TrainingState(network, epochs_done=epochs_done, evolution_state=memory)
        part = training(strategy, state, optimizer=optimizer)
        part.run(n_epochs)
        network, epochs_done = part.network.copy(), part.epochs_done
        memory = {name: array.copy() for name, array in part.evolution_state.items()}
    assert_same_network(whole.network, network)


def test_the_number_of_threads_changes_no_bit(strategy):
    one, three = training(strategy, start()), training(strategy, start(), n_threads=3)
    one.run()
    three.run()
    assert_same_network(one.network, three.network)


def test_callbacks_change_no_bit(strategy):
    alone, observed = training(strategy, start()), training(strategy, start())
    listener = Listener()
    observed.callbacks.append(listener)
    alone.run()
    observed.run()
    assert_same_network(alone.network, observed.network)
    if strategy.schedule.until > 0:
        assert listener.grown, "or nothing was tested"
        assert sum(alone.history.column("rewired")) == sum(map(sum, listener.grown))


def test_only_set_rewires_in_place():
    # The three tests above run it; a second one should be tested for speed as well.
    assert [n for n, make in STRATEGIES.items() if isinstance(make(), InPlaceStrategy)] == [
        "set",
        "annealed_set",
    ]


def test_a_network_still_learns_under_every_strategy(strategy):
    run = training(strategy, start())
    run.run()
    losses = run.history.column("loss")
    assert np.isfinite(losses).all()
    assert losses[-1] < losses[0]


def test_restoring_the_best_network_resets_the_state_of_the_strategy():
    run = training(DeepR(), start())
    run.run(2)
    assert run.evolution_state
    run.stopping = type("Kept", (), {"best_network": start()})()
    run.restore_best()
    assert run.evolution_state is None
