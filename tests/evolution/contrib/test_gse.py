"""GSE: an example by hand, its sample, and the dense reference."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon.errors import InvalidParameterError
from ratoon.evolution import GSE, Clock, LayerState
from ratoon.evolution.grow import draw_by_strength, largest
from ratoon.topology import Topology
from tests.evolution.cases import network, random_layer
from tests.evolution.dense import assert_twins_agree, cosine

START = Clock(step=0, steps_per_epoch=10, total_steps=100)


def test_a_sample_of_all_positions_gives_rigl():
    #    weights            gradient
    #    input 0   0.1  .      6  -4
    #    input 1    .  5.0     3  -2
    x, d = np.array([[2.0], [1.0]]), np.array([[3.0], [-2.0]])
    layer = LayerState(
        Topology.from_pairs((2, 2), [0, 1], [0, 1]), np.array([0.1, 5.0]), signals=lambda: (x, d)
    )
    [rewiring] = GSE(zeta=0.5, sample=50.0, anneal="constant").rewire([layer], START, 0)
    # 0.1 at place 0 goes, and comes back: 6 is the largest gradient of the empty places.
    assert_array_equal(np.sort(rewiring.topology.positions), [0, 3])
    assert_array_equal(np.sort(rewiring.carry_weights(layer.weights)), [0.0, 5.0])


def test_neurons_are_drawn_in_proportion_to_their_summed_magnitude():
    x = np.array([[1.0, -1.0], [0.0, 0.0], [4.0, 2.0]])  # 2, 0, 6
    d = np.array([[3.0, 0.0], [-0.5, 0.5]])  # 3, 1
    expected = np.outer([2, 0, 6], [3, 1]).ravel() / 32
    hits, rng = np.zeros(6), np.random.default_rng(0)
    n_draws = 5_000
    for _ in range(n_draws):
        hits[draw_by_strength((x, d), 1, rng)] += 1
    # Counts stray by sqrt(n p (1 - p)), at most 36 here; random results exceed five of these once
    # in a million.
    assert np.abs(hits - n_draws * expected).max() < 5 * 36


def test_silent_neurons_are_never_drawn():
    x, d = np.zeros((4, 3)), np.ones((5, 3))
    assert draw_by_strength((x, d), 10, np.random.default_rng(0)).size == 0
    x[2] = 1
    assert_array_equal(np.unique(draw_by_strength((x, d), 99, np.random.default_rng(0)) // 5), [2])


def test_of_equal_magnitudes_the_first_is_chosen():
    assert_array_equal(largest(np.array([2.0, -2.0, 1.0, 2.0]), 2), [0, 1])


def test_a_larger_sample_finds_larger_gradients():
    layer = random_layer((200, 150), 900)
    gradient = np.abs(np.matmul(layer.signals()[0], layer.signals()[1].T)).ravel()
    found = []
    for sample in (0.5, 2.0, 20.0):
        [rewiring] = GSE(sample=sample).rewire([layer], START, 0)
        found.append(gradient[rewiring.topology.positions[rewiring.is_grown]].mean())
    assert found[0] < found[1] < found[2]


def test_a_dense_network_with_masks_gets_the_same_topology():
    def dense(layers, clock, memory):
        for layer in layers:
            n_replaced = round(0.3 * cosine(clock.progress / 0.75) * layer.count)
            layer.prune_weakest(n_replaced)
            # Draws are the library's; all else is checked: they were empty, and as many.
            layer.grow_as_drawn(n_replaced)

    assert_twins_agree(GSE(), network(dtype=np.float64), dense)


def test_a_dense_network_with_the_same_sample_grows_the_same_connections():
    layer = random_layer((40, 30), 200, dtype=np.float64)
    from ratoon.evolution import layer_seed
    from ratoon.rng import derive_generator

    [rewiring] = GSE().rewire([layer], START, 11)
    sample = draw_by_strength(layer.signals(), 200, derive_generator(layer_seed(11, 0), "sample"))
    survivors = layer.topology.positions[rewiring.origin[~rewiring.is_grown]]
    scores = np.full(1200, -1.0)
    scores[sample] = np.abs(layer.signals()[0] @ layer.signals()[1].T).ravel()[sample]
    scores[survivors] = -1.0
    best = np.sort(np.argsort(-scores, kind="stable")[:60])
    assert_array_equal(np.sort(rewiring.topology.positions[rewiring.is_grown]), best)


@pytest.mark.parametrize("wrong", [{"zeta": -1.0}, {"sample": 0.0}, {"every": 0}])
def test_invalid_parameters_are_refused(wrong):
    [name] = wrong
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        GSE(**wrong)
