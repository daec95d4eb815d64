"""What a training has reached, apart from the loop that advances it."""

import numpy as np
import pytest

from ratoon.evolution import make_strategy
from ratoon.kernels import Scaling
from ratoon.training import EarlyStopping, Training, TrainingPlan, TrainingState
from tests.training.cases import assert_same_network, start, training


def test_a_second_cycle_has_other_random_numbers_and_an_empty_optimizer_state():
    plan = TrainingPlan(n_epochs=2)
    run = training(plan)
    run.run()
    state = run.state
    first_seed = state.cycle_seed
    state.begin_cycle(1)
    assert (state.cycle, state.epochs_done, state.epochs_before) == (1, 0, 2)
    assert state.cycle_seed != first_seed == state.seed
    assert not any(np.any(values) for layer in state.network.layers for values in layer.state)


def test_records_of_a_second_cycle_continue_the_numbers_of_the_first():
    run = training(TrainingPlan(n_epochs=2))
    run.run()
    run.state.begin_cycle(1)
    again = Training(run.state, run.data, TrainingPlan(n_epochs=2, seed=run.state.cycle_seed))
    again.run()
    assert again.history.column("epoch") == [0, 1, 2, 3]
    assert again.epochs_done == 2


def test_a_second_cycle_begins_with_the_best_network():
    best = start(seed=5)
    state = TrainingState(start(), stopping=EarlyStopping(best_network=best, best_epoch=0))
    state.evolution_state = {"age": np.zeros(3)}
    state.begin_cycle(0)
    assert state.evolution_state is None, "it belongs to other layers"
    assert_same_network(state.network, best.copy())
    assert state.network is not best
    assert state.stopping is None


def test_a_snapshot_does_not_change_with_later_epochs():
    stopping = EarlyStopping(patience=9)
    run = training(TrainingPlan(n_epochs=4, evolution=make_strategy("dsr")), stopping=stopping)
    run.validation = run.data
    run.run(2, restore_best=False)
    kept, then = run.state.snapshot(), run.state.copy()
    weights = [layer.weights.copy() for layer in run.network.layers]
    seen = (kept.stopping.best_epoch, kept.stopping.best_score, list(kept.rewired_by_layer))
    layers = list(kept.network.layers)
    run.run(2, restore_best=True)
    assert kept.network.layers == layers, "the best network replaces the layers of the last one"
    for state in (kept, then):
        assert state.epochs_done == len(state.history) == 2
        found = (state.stopping.best_epoch, state.stopping.best_score, state.rewired_by_layer)
        assert found == seen
    for layer, before in zip(then.network.layers, weights, strict=True):
        assert np.array_equal(layer.weights, before)
    assert run.stopping.best_epoch > seen[0], "or nothing was tested"


def test_a_state_that_takes_over_another_keeps_its_seed_and_its_patience():
    one = TrainingState(start(), seed=3, cycle=2, stopping=EarlyStopping(patience=7))
    other = TrainingState(start(), seed=4, epochs_done=5, stopping=EarlyStopping(patience=1))
    other.stopping.n_waited, other.stopping.best_score, other.stopping.best_epoch = 6, 0.5, 0
    other.network.scaling = Scaling(None, None, 3.0)
    network = one.network
    one.take_over(other)
    assert one.network is network
    assert_same_network(one.network, other.network)
    assert one.network.scaling.clip == 3.0
    assert (one.seed, one.cycle, one.epochs_done) == (3, 2, 5)
    assert (one.stopping.patience, one.stopping.n_waited, one.stopping.best_score) == (7, 6, 0.5)


def test_parameters_that_moved_into_the_state_still_work_and_warn():
    plan = TrainingPlan(n_epochs=4)
    whole, first = training(plan), training(plan)
    whole.run()
    first.run(2)
    with pytest.warns(DeprecationWarning, match=r"\['epochs_done', 'history'\]"):
        then = training(plan, first.network, epochs_done=2, history=first.history)
    then.run()
    assert_same_network(then.network, whole.network)
    assert then.history.column("loss") == whole.history.column("loss")
    with pytest.raises(TypeError, match=r"unexpected keyword arguments \['learning_rate'\]"):
        training(plan, learning_rate=0.1)


def test_returning_to_the_best_network_resets_the_strategy_state():
    run = training(
        TrainingPlan(n_epochs=3, evolution=make_strategy("snfs")), stopping=EarlyStopping(tol=10.0)
    )
    run.validation = run.data
    run.run(restore_best=False)
    assert run.evolution_state
    run.restore_best()
    assert run.evolution_state is None
