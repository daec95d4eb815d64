"""SRigL: an example by hand, equal numbers of inputs, ablation, and the dense reference."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.errors import InvalidParameterError
from ratoon.evolution import Clock, LayerState, SRigL
from ratoon.evolution.contrib.srigl import draw_per_output
from ratoon.topology import Topology
from tests.evolution.cases import CLOCK, apply, limited, network, random_layer
from tests.evolution.dense import assert_twins_agree, cosine

START = Clock(step=0, steps_per_epoch=10, total_steps=100)


def example():
    #    weights                 gradient
    #    input 0   5.0  0.1  .     9   3   0
    #    input 1   4.0   .   .     6   2   0
    #    input 2    .   0.2  .     3   1   0
    topology = Topology.from_pairs((3, 3), [0, 1, 0, 2], [0, 0, 1, 1])
    dense = np.zeros((3, 3))
    dense[[0, 1, 0, 2], [0, 0, 1, 1]] = [5.0, 4.0, 0.1, 0.2]
    x, d = np.array([[3.0], [2.0], [1.0]]), np.array([[3.0], [1.0], [0.0]])
    weights = dense.ravel()[topology.positions]
    return LayerState(topology, weights, signals=lambda: (x, d))


def positions_after(strategy, layers):
    return [np.sort(r.topology.positions).tolist() for r in strategy.rewire(layers, START, 0)]


def test_neurons_without_salient_connections_are_ablated():
    # zeta 0.5: 0.1 and 0.2 are pruned.  Of the absent gradients, 3 at (2, 0) and 2 at (1, 1) are
    # the largest.  Salient: 3 at output 0, 1 at output 1, none at output 2; two are the mean.
    hidden, last = example(), random_layer((3, 2), 2)
    some = SRigL(zeta=0.5, gamma=0.5, anneal="constant")
    # Outputs 0 and 1 stay with two inputs each: output 1 grows (0, 1) again, and (1, 1).
    assert positions_after(some, [hidden, last])[0] == [0, 1, 3, 4]
    # Output 1 is below 0.6 * 2 too; but output 0 has only three positions for four connections.
    more = SRigL(zeta=0.5, gamma=0.6, anneal="constant")
    assert positions_after(more, [hidden, last])[0] == [0, 1, 3, 4]


def test_the_last_layer_has_no_ablation():
    strategy = SRigL(zeta=0.5, gamma=1.0, anneal="constant")
    [after] = strategy.rewire([example()], START, 0)
    # Output 0 has the most kept connections, and gets the fourth one.
    assert after.topology.degrees()[1].tolist() == [2, 1, 1]


@pytest.mark.parametrize("gamma", [0.0, 0.3, 0.9])
def test_active_neurons_have_equal_numbers_of_inputs(gamma):
    layers = network(widths=(60, 50, 40, 5), density=0.15)
    for step in (20, 40, 60):
        rewirings = SRigL(gamma=gamma).rewire(layers, CLOCK.at(step), step)
        for index, rewiring in enumerate(rewirings):
            degrees = rewiring.topology.degrees()[1]
            is_hidden = index < 2
            if gamma == 0 or not is_hidden:
                assert degrees.min() >= degrees.max() - 1
            else:
                active = degrees[degrees > 0]
                assert active.min() >= active.max() - 1
        layers = apply(layers, rewirings)
    n_idle = sum((layer.topology.degrees()[1] == 0).sum() for layer in layers[:2])
    if gamma != 0.3:
        assert (n_idle > 0) == (gamma > 0)


def test_numbers_of_inputs_are_equal_as_far_as_a_limit_allows():
    layers = limited(network(widths=(60, 50, 5), density=0.1))
    for layer, rewiring in zip(layers, SRigL(gamma=0.0).rewire(layers, CLOCK, 0), strict=True):
        most = layer.allowed.degrees()[1]
        degrees = rewiring.topology.degrees()[1]
        level = degrees.max()
        assert ((degrees == most) | (degrees >= level - 1)).all()


def dense_step(layer, count, gamma, is_last):
    """Rewire one dense layer by loops over its outputs."""
    n = layer.count
    sizes = np.where(layer.mask, np.abs(layer.weights), np.inf)
    kept = layer.mask.copy()
    kept.ravel()[np.argsort(sizes, axis=None)[:count]] = False
    absent = np.where(layer.mask, -1.0, np.abs(layer.gradient))
    salient = kept.copy()
    salient.ravel()[np.argsort(-absent, axis=None)[:count]] = True
    fan_in = n / (layer.mask.sum(axis=0) > 0).sum()
    active = [j for j in range(layer.mask.shape[1]) if salient[:, j].sum() >= gamma * fan_in]
    if is_last:
        active = list(range(layer.mask.shape[1]))
    by_kept = sorted(active, key=lambda j: -kept[:, j].sum())
    target = dict.fromkeys(range(layer.mask.shape[1]), 0)
    for number, j in enumerate(by_kept):
        target[j] = n // len(active) + (number < n % len(active))
    for j in range(layer.mask.shape[1]):
        inputs = np.flatnonzero(kept[:, j])
        inputs = inputs[np.argsort(-np.abs(layer.weights[inputs, j]))][: target[j]]
        kept[:, j] = False
        kept[inputs, j] = True
    layer.prune(layer.mask & ~kept)
    for j in range(layer.mask.shape[1]):
        scores = np.where(layer.mask[:, j], -1.0, np.abs(layer.gradient[:, j]))
        grown = np.argsort(-scores)[: target[j] - layer.mask[:, j].sum()]
        layer.mask[grown, j] = True
        layer.weights[grown, j] = 0.0


@pytest.mark.parametrize("gamma", [0.0, 0.3, 0.7])
def test_a_dense_network_with_masks_gets_the_same_topology(gamma):
    def dense(layers, clock, memory):
        for index, layer in enumerate(layers):
            count = round(0.3 * cosine(clock.progress / 0.75) * layer.count)
            dense_step(layer, count, gamma, index == len(layers) - 1)

    assert_twins_agree(SRigL(gamma=gamma), network(dtype=np.float64), dense, n_rewirings=3)


def test_draws_per_output_are_uniform_and_avoid_occupied_positions():
    occupied = np.array([0, 3, 4, 7])  # of 4 x 3: output 0 lacks input 2, output 1 inputs 0 and 3
    times, rng = np.zeros(12), np.random.default_rng(0)
    for _ in range(2000):
        drawn = draw_per_output((4, 3), occupied, np.array([1, 1, 1]), rng)
        assert_array_equal(np.sort(drawn % 3), [0, 1, 2])
        assert not np.isin(drawn, occupied).any()
        times[drawn] += 1
    # Output 0 has two empty inputs, output 1 too, output 2 four; five deviations of about 22.
    assert np.abs(times[[6, 9, 1, 10]] - 1000).max() < 5 * 22.4
    assert np.abs(times[[2, 5, 8, 11]] - 500).max() < 5 * 19.4


def test_wide_outputs_are_drawn_by_repetition():
    shape, rng = (500, 40), np.random.default_rng(0)
    occupied = np.sort(Topology.random(shape, 2000, seed=0).positions)
    counts = rng.integers(0, 300, size=40)
    drawn = draw_per_output(shape, occupied, counts, rng)
    assert np.unique(drawn).size == counts.sum()
    assert not np.isin(drawn, occupied).any()
    assert_array_equal(np.bincount(drawn % 40, minlength=40), counts)


@pytest.mark.parametrize("wrong", [{"zeta": -1.0}, {"gamma": 1.5}, {"every": 0}])
def test_invalid_parameters_are_refused(wrong):
    [name] = wrong
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        SRigL(**wrong)
