"""Layers to rewire, and checks of every rewiring."""

from itertools import pairwise

import numpy as np

from ratoon.evolution import Clock, LayerState
from ratoon.layers import SparseLayer
from ratoon.topology import GROWN, Topology

CLOCK = Clock(step=20, steps_per_epoch=10, total_steps=100)


def layer_state(topology, *, seed=0, batch=5, dtype=np.float32, n_states=1, **changes):
    """Return a layer with random weights, momentum and signals."""
    rng = np.random.default_rng(seed)
    n_in, n_out = topology.shape
    x = np.maximum(rng.normal(size=(n_in, batch)), 0).astype(dtype)
    d = rng.normal(size=(n_out, batch)).astype(dtype)
    given = {
        "weights": rng.normal(size=topology.n_connections).astype(dtype),
        "state": tuple(
            rng.normal(size=topology.n_connections).astype(dtype) for _ in range(n_states)
        ),
        "signals": lambda: (x, d),
        "learning_rate": 0.01,
    }
    return LayerState(topology, **{**given, **changes})


def random_layer(shape=(30, 20), n_connections=150, *, seed=0, **changes):
    """Return a layer with a random topology."""
    return layer_state(Topology.random(shape, n_connections, seed=seed), seed=seed, **changes)


def network(*, seed=0, density=0.2, widths=(40, 30, 25, 4), **changes):
    """Return the layers of a network of these widths."""
    return [
        random_layer((n_in, n_out), max(1, round(density * n_in * n_out)), seed=seed + i, **changes)
        for i, (n_in, n_out) in enumerate(pairwise(widths))
    ]


def sparse_layer(layer):
    """Return the layer as one that can be changed in place."""
    return SparseLayer(
        layer.topology,
        layer.weights.copy(),
        np.zeros(layer.topology.shape[1], dtype=layer.weights.dtype),
        init=layer.init,
        state=[values.copy() for values in layer.state],
    )


def apply(layers, rewirings):
    """Return the layers after their rewirings, with the same signals."""
    after = []
    for layer, rewiring in zip(layers, rewirings, strict=True):
        after.append(
            LayerState(
                rewiring.topology,
                rewiring.carry_weights(layer.weights),
                tuple(rewiring.carry(values) for values in layer.state),
                layer.init,
                layer.signals,
                layer.n_threads,
                layer.learning_rate,
                layer.allowed,
            )
        )
    return after


def assert_consistent(layer, rewiring):
    """Check that positions, values and origins of a rewiring are consistent."""
    old, new = layer.topology, rewiring.topology
    assert new.shape == old.shape
    assert rewiring.origin.shape == (new.n_connections,)
    assert np.unique(new.positions).size == new.n_connections, "positions are distinct"
    assert Topology.checked(new.shape, new.tile, new.grouped, new.starts, new.packed) == new
    kept = rewiring.origin != GROWN
    origin = rewiring.origin[kept]
    assert np.unique(origin).size == origin.size, "origins are distinct"
    assert np.array_equal(new.positions[kept], old.positions[origin]), "kept ones do not move"
    for values in layer.state:
        carried = rewiring.carry(values)
        assert np.array_equal(carried[kept], values[origin])
        assert not carried[~kept].any(), "a new connection has no momentum"


def dense_of(layer, values=None):
    """Return weights (or other values) and mask as dense matrices."""
    mask = np.zeros(layer.topology.shape, dtype=bool)
    matrix = np.zeros(layer.topology.shape, dtype=layer.weights.dtype)
    rows, columns = layer.topology.pairs()
    mask[rows, columns] = True
    matrix[rows, columns] = layer.weights if values is None else values
    return matrix, mask


def positions_of(topology):
    """Return the positions of a topology, ascending."""
    return np.sort(topology.positions)
