"""WAST: an example by hand, the dense reference, and features that were planted."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ratoon import SparseFeatureSelector, SparseMLPClassifier
from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.evolution import WAST, Clock, LayerState, rewire_from, start_state
from ratoon.topology import Topology
from tests.evolution.cases import network
from tests.evolution.dense import assert_twins_agree

START = Clock(step=0, steps_per_epoch=10, total_steps=100)


def test_connections_move_to_important_inputs():
    #    weights            d: 1 at output 0, -1 at output 1
    #    input 0   2.0  .
    #    input 1   1.0 -4.0
    #    input 2    .   1.0
    topology = Topology.from_pairs((3, 2), [0, 1, 1, 2], [0, 0, 1, 1])
    dense = np.array([[2.0, 0.0], [1.0, -4.0], [0.0, 1.0]])
    d = np.array([[1.0], [-1.0]])
    first = LayerState(
        topology, dense.ravel()[topology.positions], signals=lambda: (np.ones((3, 1)), d)
    )
    last = LayerState(
        Topology.full((2, 1)), np.ones(2), signals=lambda: (np.ones((2, 1)), np.ones((1, 1)))
    )
    strategy = WAST(zeta=0.4, sensitivity_weight=0.5)
    state = start_state(strategy, [first, last], 0)
    rewirings, state = rewire_from(strategy, state, [first, last], START, 0)
    # Inputs: 0.5 * (|2|, |1 + 4|, |-1|) + 0.5 * (2, 5, 1) = (2, 5, 1).
    assert_allclose(state["inputs"], [2.0, 5.0, 1.0])
    assert_allclose(state["outputs"], [0.5 * 1 + 0.5 * 2])
    # Scores of positive weights: 4 at (0, 0), 5 at (1, 0), 1 at (2, 1), which is pruned; of the
    # one negative weight round(0.4) = 0 are.  Of the inputs with an empty position, 0 is the most
    # important: (0, 1).
    assert_array_equal(np.sort(rewirings[0].topology.positions), [0, 1, 2, 3])


def test_a_dense_network_with_masks_gets_the_same_topology():
    def dense(layers, clock, memory):
        first, last = layers[0], layers[-1]
        sides = memory.setdefault("sides", [np.zeros(40), np.zeros(4)])
        sides[0] += 0.9 * np.abs(first.weights @ first.d).sum(axis=1)
        sides[0] += 0.1 * np.abs(first.weights).sum(axis=1)
        sides[1] += 0.9 * np.abs(last.d).sum(axis=1) + 0.1 * np.abs(last.weights).sum(axis=0)
        for index, layer in enumerate(layers):
            count, scores = layer.count, np.ones_like(layer.weights)
            if index == 0:
                scores *= sides[0][:, None]
            if index == 2:
                scores *= sides[1]
            for side in (layer.weights >= 0, layer.weights < 0):
                places = np.flatnonzero(layer.mask & side)
                order = np.argsort(np.abs(layer.weights * scores).ravel()[places])
                goes = places[order[: round(0.3 * places.size)]]
                layer.prune(np.unravel_index(goes, layer.mask.shape))
            if index == 1:
                layer.grow_as_drawn(count - layer.count)
                continue
            candidates = np.where(layer.mask, -1.0, scores).ravel()
            best = np.argsort(-candidates, kind="stable")[: count - layer.count]
            grown = np.unravel_index(best, layer.mask.shape)
            layer.mask[grown] = True
            layer.weights[grown] = 0.0

    assert_twins_agree(WAST(), network(dtype=np.float64), dense, n_rewirings=3)


def test_most_of_the_planted_features_are_selected():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 200))
    planted = np.arange(0, 200, 20)
    y = x[:, planted].sum(axis=1) > 0
    settings = {"solver": "sgd", "learning_rate_init": 0.01, "weight_decay": 0.3, "batch_size": 10}
    model = SparseMLPClassifier((50,), epsilon=10, evolution=WAST(), max_iter=20, **settings)
    selector = SparseFeatureSelector(10, estimator=model, n_repeats=2, random_state=0).fit(x, y)
    # At random it would be one in twenty.
    assert np.isin(selector.get_support(indices=True), planted).sum() >= 7


def test_the_errors_of_an_autoencoder_are_the_sensitivity_of_its_inputs():
    layers = network(widths=(20, 10, 20), dtype=np.float64)
    strategy = WAST(sensitivity_weight=1.0, sensitivity="reconstruction")
    _, state = rewire_from(strategy, start_state(strategy, layers, 0), layers, START, 0)
    errors = np.abs(layers[1].signals()[1]).sum(axis=1)
    assert_allclose(state["inputs"], errors)
    assert_allclose(state["outputs"], errors)
    with pytest.raises(InvalidInputError, match="40 inputs and 4 outputs"):
        start_state(strategy, network(), 0)


@pytest.mark.parametrize(
    "wrong", [{"zeta": -1.0}, {"sensitivity_weight": 1.5}, {"sensitivity": "x"}]
)
def test_invalid_parameters_are_refused(wrong):
    [name] = wrong
    with pytest.raises(InvalidParameterError, match=f"`{name}`"):
        WAST(**wrong)
