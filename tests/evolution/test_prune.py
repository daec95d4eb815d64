"""Choosing connections to prune, compared with a sort."""

import numpy as np
import pytest

from ratoon.errors import InvalidParameterError
from ratoon.evolution import SET, Clock, RigL
from ratoon.evolution.prune import relative_importance, strongest, strongest_of_each_sign
from ratoon.kernels import reference
from ratoon.topology import Topology
from tests.evolution.cases import CLOCK, dense_of, network, random_layer, sparse_layer
from tests.evolution.dense import assert_twins_agree, cosine


def weights_of(kind, size):
    drawn = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    return {
        "all different": drawn,
        "many equal": np.round(drawn, 1),
        "zeros of both signs": np.copysign(np.float32(0), drawn),
        "one sign": np.abs(drawn),
        "mostly no numbers": np.where(drawn < 1, np.copysign(np.float32(np.nan), drawn), drawn),
    }[kind]


KINDS = ("all different", "many equal", "zeros of both signs", "one sign", "mostly no numbers")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize("zeta", [0.0, 0.3, 0.5, 0.999, 1.0])
def test_the_pruned_connections_of_each_sign_are_those_of_a_sort(kind, size, zeta):
    weights = weights_of(kind, size)
    found = strongest_of_each_sign(weights, zeta)
    assert found.tolist() == reference.strongest_of_each_sign(weights, zeta).tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_pruned", [0, 1, 300, 999, 1000])
def test_the_weakest_connections_of_both_signs_together_are_pruned(kind, n_pruned):
    weights = weights_of(kind, 1000)
    weakest_first = np.argsort(np.abs(weights), kind="stable")
    assert strongest(weights, n_pruned).tolist() == sorted(weakest_first[n_pruned:].tolist())


def dense_importance(weights):
    sizes = np.abs(weights)
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(sizes / sizes.sum(axis=0)) + np.nan_to_num(
            sizes / sizes.sum(axis=1, keepdims=True)
        )


def test_relative_importance_is_that_of_the_dense_matrix():
    layer = random_layer((40, 30), 100, dtype=np.float64)
    weights = np.where(layer.topology.rows == layer.topology.rows[0], 0.0, layer.weights)
    dense, _ = dense_of(layer, weights)
    found = relative_importance(layer.topology, weights)
    expected = dense_importance(dense).ravel()[layer.topology.positions]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("strategy", [SET, RigL])
def test_relative_removal_keeps_the_only_connection_of_a_neuron(strategy):
    #  0.1   .    .      0.1 is the smallest weight, and the only one of its input and output
    #   .   1.0  2.0
    #   .   3.0  4.0
    layer = random_layer((3, 3), 5)
    topology = Topology.from_pairs((3, 3), [0, 1, 1, 2, 2], [0, 1, 2, 1, 2])
    weights = np.zeros(5, dtype=np.float32)
    order = np.argsort(topology.positions)
    weights[order] = [0.1, 1.0, 2.0, 3.0, 4.0]
    layer = type(layer)(topology, weights, signals=lambda: (np.ones((3, 1)), np.ones((3, 1))))
    start = Clock(0, 10, 100)
    for removal, lost in (("magnitude", 0.1), ("relative", 1.0)):
        [rewiring] = strategy(zeta=0.2, removal=removal).rewire([layer], start, 0)
        kept = weights[rewiring.origin[~rewiring.is_grown]]
        assert sorted({0.1, 1.0, 2.0, 3.0, 4.0} - set(np.round(kept.astype(float), 1))) == [lost]


def test_rigl_with_relative_removal_agrees_with_a_dense_network():
    def dense(layers, clock, memory):
        for layer in layers:
            count = round(0.3 * cosine(clock.progress / 0.75) * layer.count)
            scores = np.where(layer.mask, dense_importance(layer.weights), 9e9)
            order = np.argsort(scores, axis=None)[:count]
            layer.prune(np.unravel_index(order, layer.mask.shape))
            layer.grow_largest(layer.gradient, count)

    layers = network(dtype=np.float64)
    assert_twins_agree(RigL(removal="relative"), layers, dense, n_rewirings=3)


def test_set_with_relative_removal_rewires_in_place_as_in_general():
    strategy = SET(removal="relative")
    layer = random_layer((300, 200), 4000, n_states=2)
    general, in_place = sparse_layer(layer), sparse_layer(layer)
    general.apply(strategy.rewire_layer(layer, CLOCK, 5))
    n_grown = strategy.rewire_in_place(in_place, CLOCK, 5, 1)
    assert n_grown > 0
    assert in_place.topology == general.topology
    np.testing.assert_array_equal(in_place.weights, general.weights)
    for ours, theirs in zip(in_place.state, general.state, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("strategy", [SET, RigL])
def test_an_unknown_removal_is_refused(strategy):
    with pytest.raises(InvalidParameterError, match="`removal`"):
        strategy(removal="random")
