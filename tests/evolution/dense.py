"""Reference implementations of every method on dense matrices with masks, for small networks.

Nothing here is shared with the library.  Where a method draws at random, the twin gets what the
library drew and checks that it was allowed, so topologies can be compared position by position.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from ratoon.evolution import rewire_from, start_state
from tests.evolution.cases import CLOCK, apply, dense_of


@dataclass
class Dense:
    """One layer as dense matrices: weights (0 where there is no connection), mask, signals."""

    weights: np.ndarray
    mask: np.ndarray
    momentum: np.ndarray
    x: np.ndarray
    d: np.ndarray
    drawn: np.ndarray | None = None  # what the library grew, for methods that draw

    @property
    def count(self):
        return int(self.mask.sum())

    @property
    def gradient(self):
        return self.x @ self.d.T

    def prune(self, goes):
        """Take connections away, with their values."""
        for matrix in (self.weights, self.momentum, self.mask):
            matrix[goes] = 0

    def prune_weakest(self, count):
        """Take the ``count`` smallest weights away."""
        places = np.flatnonzero(self.mask)
        weakest = places[np.argsort(np.abs(self.weights.ravel()[places]))[:count]]
        self.prune(np.unravel_index(weakest, self.mask.shape))

    def grow_largest(self, scores, count, weights=0.0):
        """Add connections where scores are largest outside of the mask."""
        candidates = np.where(self.mask, -1.0, np.abs(scores)).ravel()
        grown = np.unravel_index(np.argsort(-candidates)[:count], self.mask.shape)
        self.mask[grown] = True
        self.weights[grown] = weights if np.isscalar(weights) else weights[grown]

    def grow_as_drawn(self, count):
        """Add what the library drew, which must be that many empty places."""
        assert self.drawn.size == count
        assert not self.mask.ravel()[self.drawn].any(), "all were empty"
        self.mask.ravel()[self.drawn] = True
        self.weights.ravel()[self.drawn] = 0.0


def proportional(total, weights, limits):
    """Split in proportion, one connection at a time to the part with the largest deficit."""
    weights = np.asarray(weights, dtype=float)
    given = np.zeros(len(limits), dtype=int)
    while given.sum() < total:
        open_ = given < np.asarray(limits)
        rest = total - given[~open_].sum()
        target = np.where(open_, rest * weights / weights[open_].sum(), -np.inf)
        given[np.argmax(target - given)] += 1
    return given


def path_scores(mask, score):
    """Return the scores of absent positions by paths of length 3, from whole matrices."""
    links = mask.astype(float)
    common_in, common_out = links @ links.T, links.T @ links
    if score == "ch2_l3n":
        scores = np.zeros(mask.shape)
        for common, side, flip in ((common_in, links, False), (common_out, links.T, True)):
            is_common = common != 0
            external = (side.sum(axis=1) - common) * is_common
            external = np.where(external == 0, 1, external) - 1
            weight = (common + is_common) / (external + 1)
            np.fill_diagonal(weight, 0)
            scores += (weight @ side).T if flip else weight @ side
        return np.where(mask, 0, scores)
    scores = np.zeros(mask.shape)
    degrees_in, degrees_out = links.sum(axis=1), links.sum(axis=0)
    for i, j in zip(*np.nonzero(~mask), strict=True):
        near = np.flatnonzero(mask[i])  # outputs after the first step
        far = np.flatnonzero(mask[:, j])  # inputs before the last step
        paths = mask[np.ix_(far, near)]
        # Connections to neurons that are not on these paths, nor their end.
        external_in = degrees_in[far] - paths.sum(axis=1) - 1
        external_out = degrees_out[near] - paths.sum(axis=0) - 1
        product = np.outer(1 + external_in, 1 + external_out)
        scores[i, j] = np.sum(paths / np.sqrt(product))
    return scores


def to_dense(layer, drawn=None):
    """Return the dense twin of a layer."""
    weights, mask = dense_of(layer)
    momentum, _ = dense_of(layer, layer.state[0] if layer.state else layer.weights)
    return Dense(weights, mask, momentum, *layer.signals(), drawn)


def assert_twins_agree(strategy, layers, dense_rewire, *, n_rewirings=4, clock=CLOCK, watch=0):
    """Rewire both again and again, between times move all weights alike; compare every time.

    ``dense_rewire(layers, clock, memory)`` changes dense layers in place; ``memory`` is a
    dictionary of its own.  ``watch`` minibatches are shown to both before each rewiring.
    """
    rng = np.random.default_rng(7)
    state, memory = start_state(strategy, layers, 0), {}
    twins = [to_dense(layer) for layer in layers]
    for number in range(n_rewirings):
        moves = [rng.normal(0, 0.3, size=layer.topology.shape) for layer in layers]
        layers = [
            replace(layer, weights=layer.weights + move.ravel()[layer.topology.positions])
            for layer, move in zip(layers, moves, strict=True)
        ]
        for twin, move in zip(twins, moves, strict=True):
            twin.weights += np.where(twin.mask, move, 0.0)
        for step in range(clock.step - watch, clock.step + 1):
            layers = [with_signals(layer, rng) for layer in layers]
            for twin, layer in zip(twins, layers, strict=True):
                twin.x, twin.d = layer.signals()
            if step < clock.step:
                state = strategy.watch(state, layers, clock.at(step))
                memory.setdefault("seen", []).append((step, [(t.x, t.d) for t in twins]))
        rewirings, state = rewire_from(strategy, state, layers, clock, number)
        layers = apply(layers, rewirings)
        for twin, rewiring in zip(twins, rewirings, strict=True):
            twin.drawn = rewiring.topology.positions[rewiring.is_grown]
        dense_rewire(twins, clock, memory)
        for twin, layer in zip(twins, layers, strict=True):
            weights, mask = dense_of(layer)
            np.testing.assert_array_equal(mask, twin.mask)
            np.testing.assert_allclose(weights, twin.weights, rtol=1e-12)
            np.testing.assert_array_equal(dense_of(layer, layer.state[0])[0], twin.momentum)
        clock = clock.at(clock.step + max(20, 2 * watch))
    return layers, state


def with_signals(layer, rng):
    """Return the layer with a new minibatch about to come."""
    n_in, n_out = layer.topology.shape
    x = np.maximum(rng.normal(size=(n_in, 5)), 0)
    d = rng.normal(size=(n_out, 5))
    return replace(layer, signals=lambda: (x, d))


def cosine(progress):
    """Return RigL's annealing, written out."""
    return 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
