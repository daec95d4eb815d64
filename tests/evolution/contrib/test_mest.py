"""MEST: an example by hand, the soft memory bound, and the dense reference."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.errors import InvalidParameterError
from ratoon.evolution import MEST, Clock, LayerState, rewire_from, start_state
from ratoon.topology import Topology
from tests.evolution.cases import CLOCK, apply, network
from tests.evolution.dense import assert_twins_agree, cosine

START = Clock(step=0, steps_per_epoch=10, total_steps=100)


def example():
    #    weights            gradient
    #    input 0   0.1  .      6  -4
    #    input 1    .   0.5    3  -2
    x, d = np.array([[2.0], [1.0]]), np.array([[3.0], [-2.0]])
    return LayerState(
        Topology.from_pairs((2, 2), [0, 1], [0, 1]), np.array([0.1, 0.5]), signals=lambda: (x, d)
    )


@pytest.mark.parametrize(("gradient_weight", "pruned"), [(0.0, 0), (0.01, 0), (0.2, 3)])
def test_the_least_important_connection_is_pruned(gradient_weight, pruned):
    # Importance 0.1 + 6 lambda at position 0, 0.5 + 2 lambda at position 3: equal for 0.1.
    mest = MEST(zeta=0.5, gradient_weight=gradient_weight, anneal="constant")
    [rewiring] = mest.rewire([example()], START, 0)
    kept = rewiring.topology.positions[~rewiring.is_grown]
    assert_array_equal(kept, [3 - pruned])
    assert rewiring.topology.n_connections == 2


def test_growth_by_gradient_takes_the_largest_empty_one():
    mest = MEST(zeta=0.5, gradient_weight=0.0, growth="gradient", anneal="constant")
    [rewiring] = mest.rewire([example()], START, 0)
    # Position 0 is pruned; it has the largest gradient of the empty ones, and comes back at 0.
    assert_array_equal(np.sort(rewiring.topology.positions), [0, 3])
    assert_array_equal(np.sort(rewiring.carry_weights(example().weights)), [0.0, 0.5])


@pytest.mark.parametrize("until", [0.5, 0.75, 1.0])
def test_a_soft_bound_grows_first_and_ends_at_the_budget(until):
    strategy = MEST(memory="soft", until=until)
    layers = network()
    budget = [layer.topology.n_connections for layer in layers]
    state = start_state(strategy, layers, 0)
    due = strategy.schedule.due_steps(START, 100)
    for number, step in enumerate(due):
        clock = START.at(step)
        rewirings, state = rewire_from(strategy, state, layers, clock, number)
        if number == 0:
            kept = [(~rewiring.is_grown).sum() for rewiring in rewirings]
            assert kept == budget, "the first rewiring prunes nothing"
        layers = apply(layers, rewirings)
        grown = [0 if step == due[-1] else round(strategy.fraction(clock) * n) for n in budget]
        assert [r.n_grown for r in rewirings] == grown
        assert [layer.topology.n_connections for layer in layers] == [
            n + more for n, more in zip(budget, grown, strict=True)
        ]
    assert [layer.topology.n_connections for layer in layers] == budget


def test_a_soft_bound_never_exceeds_the_positions_of_a_layer():
    layers = network(density=0.9)
    rewirings = MEST(memory="soft", zeta=0.5).rewire(layers, CLOCK, 0)
    assert all(r.topology.is_full for r in rewirings)


@pytest.mark.parametrize("growth", ["random", "gradient"])
def test_a_dense_network_with_masks_gets_the_same_topology(growth):
    def dense(layers, clock, memory):
        for layer in layers:
            count = round(0.3 * cosine(clock.progress / 0.75) * layer.count)
            scores = np.where(layer.mask, np.abs(layer.weights) + 0.01 * abs(layer.gradient), 9e9)
            order = np.argsort(scores, axis=None)[:count]
            layer.prune(np.unravel_index(order, layer.mask.shape))
            if growth == "gradient":
                layer.grow_largest(layer.gradient, count)
            else:
                layer.grow_as_drawn(count)

    assert_twins_agree(MEST(growth=growth), network(dtype=np.float64), dense, n_rewirings=3)


def test_a_dense_network_agrees_on_the_soft_bound():
    def dense(layers, clock, memory):
        budgets = memory.setdefault("budgets", [layer.count for layer in layers])
        for layer, budget in zip(layers, budgets, strict=True):
            scores = np.where(layer.mask, np.abs(layer.weights) + 0.01 * abs(layer.gradient), 9e9)
            order = np.argsort(scores, axis=None)[: layer.count - budget]
            layer.prune(np.unravel_index(order, layer.mask.shape))
            layer.grow_as_drawn(round(0.3 * budget))

    strategy = MEST(memory="soft", until=1.0, anneal="constant")
    assert_twins_agree(strategy, network(dtype=np.float64), dense, n_rewirings=3)


@pytest.mark.parametrize(
    "wrong",
    [{"zeta": -1.0}, {"gradient_weight": -0.1}, {"growth": "fast"}, {"memory": "none"}],
)
def test_invalid_parameters_are_refused(wrong):
    [name] = wrong
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        MEST(**wrong)
