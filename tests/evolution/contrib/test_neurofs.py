"""NeuroFS: an example by hand, the number of inputs, the dense reference, planted features."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from ratoon import SparseFeatureSelector, SparseMLPClassifier
from ratoon.errors import InvalidParameterError
from ratoon.evolution import Clock, LayerState, NeuroFS, rewire_from, start_state
from ratoon.topology import Topology
from tests.evolution.cases import apply, limited, network
from tests.evolution.dense import assert_twins_agree

START = Clock(step=0, steps_per_epoch=10, total_steps=100)


def test_weak_inputs_are_exchanged_for_those_with_a_large_gradient():
    #    weights          strength   gradient
    #    input 0  5.0  .     5        1  -1
    #    input 1   .  0.1    0.1      1  -1
    #    input 2  2.0 1.0    3        1  -1
    #    input 3   .   .              4  -4
    topology = Topology.from_pairs((4, 2), [0, 1, 2, 2], [0, 1, 0, 1])
    dense = np.array([[5.0, 0.0], [0.0, 0.1], [2.0, 1.0], [0.0, 0.0]])
    x, d = np.array([[1.0], [1.0], [1.0], [4.0]]), np.array([[1.0], [-1.0]])
    layer = LayerState(topology, dense.ravel()[topology.positions], signals=lambda: (x, d))
    # At half of remove_until three inputs are wanted, which there are; none is exchanged.
    strategy = NeuroFS(2, zeta=0.0, momentum=0.0, zeta_inputs=0.9, remove_until=0.5)
    [one], state = rewire_from(
        strategy, start_state(strategy, [layer], 0), [layer], START.at(25), 0
    )
    assert one.topology == layer.topology
    assert not state["returned"].any()
    # At remove_until two are left, and 0.9 * 2 * 0.5 rounds down to none: 1 and 3 are inactive.
    [two], _ = rewire_from(strategy, state, [layer], START.at(50), 0)
    assert_array_equal(np.sort(two.topology.positions), [0, 1, 4, 5])
    # With 0.99 * 2 * 0.6 = 1 exchanged, 0 stays and 3 returns: (3, 0) first, then (0, 1), (3, 1).
    strategy = NeuroFS(2, zeta=0.0, momentum=0.0, zeta_inputs=0.99, remove_until=0.4)
    [two], state = rewire_from(strategy, state, [layer], START.at(40), 0)
    assert_array_equal(np.sort(two.topology.positions), [0, 1, 6, 7])
    assert state["returned"].tolist() == [False, False, False, True]


@pytest.mark.parametrize("density", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("is_limited", [False, True])
def test_the_number_of_active_inputs_falls_to_the_wanted_one(density, is_limited):
    layers = network(widths=(60, 20, 4), density=density)
    if is_limited:
        layers = limited(layers)
    strategy = NeuroFS(7)
    state = start_state(strategy, layers, 0)
    for step in strategy.schedule.due_steps(START, 100):
        rewirings, state = rewire_from(strategy, state, layers, START.at(step), step)
        before = layers[0].topology.n_connections
        layers = apply(layers, rewirings)
        is_active = layers[0].topology.degrees()[0] > 0
        assert np.count_nonzero(is_active) <= strategy.n_active(60, step / 100)
        of_active = 20 * is_active if layers[0].allowed is None else (
            layers[0].allowed.degrees()[0] * is_active
        )  # fmt: skip
        assert layers[0].topology.n_connections == min(before, of_active.sum())
    assert np.count_nonzero(is_active) == 7


def test_an_input_that_has_just_returned_is_kept_while_places_are_left():
    [layer, *_] = network(widths=(30, 20, 4), density=0.3)
    strategy = NeuroFS(10, momentum=0.0, remove_until=0.3, zeta_inputs=0.2)
    state = start_state(strategy, [layer], 0)
    [rewiring], state = rewire_from(strategy, state, [layer], START.at(20), 0)
    returned = state["returned"]
    assert returned.any()
    [layer] = apply([layer], [rewiring])
    [rewiring], _ = rewire_from(strategy, state, [layer], START.at(30), 1)
    assert (rewiring.topology.degrees()[0][returned] > 0).all()


@pytest.mark.parametrize("momentum", [0.0, 0.2])
def test_a_dense_network_with_masks_gets_the_same_topology(momentum):
    def dense(layers, clock, memory):
        progress = clock.progress
        gradient = layers[0].gradient.copy()
        for step, signals in memory.get("seen", []):
            if step > clock.step - 3:  # 0.2 ** 3 is below one per cent
                gradient += momentum ** (clock.step - step) * signals[0][0] @ signals[0][1].T
        for index, layer in enumerate(layers):
            count = layer.count
            if index == 0:
                n_active = 40 - round(30 * min(1.0, progress / 0.65))
                n_strong = n_active - int((40 - n_active) * 0.4 * (1 - progress))
                strength = np.abs(layer.weights).sum(axis=1)
                strength[~layer.mask.any(axis=1)] = -1.0
                order = np.argsort(-strength)
                stays = list(order[:n_strong])
                recent = [i for i in order[n_strong:] if i in memory.get("returned", [])]
                stays += [i for i in recent if strength[i] >= 0][: n_active - n_strong]
                is_active = np.isin(np.arange(40), stays)
                layer.prune(layer.mask & ~is_active[:, None])
            for side in (layer.weights >= 0, layer.weights < 0):
                places = np.flatnonzero(layer.mask & side)
                order = np.argsort(np.abs(layer.weights).ravel()[places])
                goes = places[order[: round(0.2 * places.size)]]
                layer.prune(np.unravel_index(goes, layer.mask.shape))
            if index > 0:
                layer.grow_largest(layer.gradient, count - layer.count)
                continue
            best = np.abs(gradient).max(axis=1)
            best[is_active] = -1.0
            returned = np.argsort(-best)[: n_active - is_active.sum()]
            memory["returned"] = returned[best[returned] > 0]
            is_active[memory["returned"]] = True
            for i in memory["returned"]:
                layer.mask[i, np.argmax(np.abs(gradient[i]))] = True
            layer.grow_largest(gradient * is_active[:, None], count - layer.count)

    strategy = NeuroFS(10, momentum=momentum)
    layers = network(dtype=np.float64)
    assert_twins_agree(strategy, layers, dense, n_rewirings=3, watch=strategy.n_watched)


def test_planted_features_are_the_ones_left():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 200))
    planted = np.arange(0, 200, 20)
    y = x[:, planted].sum(axis=1) > 0
    settings = {"solver": "sgd", "learning_rate_init": 0.01, "weight_decay": 0.3, "batch_size": 10}
    model = SparseMLPClassifier((50,), epsilon=10, evolution=NeuroFS(10), max_iter=40, **settings)
    selector = SparseFeatureSelector(10, estimator=model, n_repeats=2, random_state=0).fit(x, y)
    # At random it would be one in twenty.
    assert np.isin(selector.get_support(indices=True), planted).sum() >= 9
    assert (np.count_nonzero(selector.strengths_, axis=1) == 10).all(), "no other input is left"


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_features": 0},
        {"n_features": 2.5},
        {"n_features": True},
        {"zeta": -1.0},
        {"zeta_inputs": 1.0},
        {"momentum": 1.0},
        {"until": 0.5, "remove_until": 0.6},
    ],
)
def test_invalid_parameters_are_refused(wrong):
    with pytest.raises(InvalidParameterError, match=f"`{list(wrong)[-1]}`"):
        NeuroFS(**wrong)


def test_a_fraction_of_the_features_can_be_left():
    assert NeuroFS(0.1).n_active(250, 1.0) == 25
    assert NeuroFS(50).n_active(20, 1.0) == 20
