"""Operations on whole neurons: importance, idle neurons, connecting new neurons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.evolution.base import LayerState
from ratoon.evolution.grow import gradients_at, signals_of
from ratoon.kernels.absent import grow_at, largest_absent, slots_of
from ratoon.topology import IntArray, Rewiring, Topology


def importance(layer: LayerState) -> Array:
    """Return the summed magnitude of the incoming weights of every output of a layer.

    Examples
    --------
    >>> topology = Topology.from_pairs((2, 3), [0, 1, 1], [0, 0, 2])
    >>> importance(LayerState(topology, np.array([1.0, -2.0, 0.5])))
    array([3. , 0. , 0.5])
    """
    return layer.strengths()[1]


def idle_neurons(before: Topology, after: Topology) -> IntArray:
    """Return the neurons between two layers that have no connection in either layer.

    Examples
    --------
    >>> before = Topology.from_pairs((2, 3), [0], [0])
    >>> after = Topology.from_pairs((3, 2), [2], [1])
    >>> idle_neurons(before, after)
    array([1])
    """
    return np.flatnonzero((before.degrees()[1] == 0) & (after.degrees()[0] == 0))


@dataclass(frozen=True, eq=False)
class Growth:
    """Connections to grow in one layer: ascending, distinct positions and their weights."""

    positions: IntArray
    weights: Array

    @classmethod
    def of(cls, positions: IntArray, weights: Array) -> Growth:
        """Sort positions and add the weights at equal positions."""
        distinct, index = np.unique(positions, return_inverse=True)
        summed = np.zeros(distinct.size, dtype=weights.dtype)
        np.add.at(summed, index, weights)
        return cls(distinct, summed)

    @classmethod
    def empty(cls, dtype: Any) -> Growth:
        """Return no connections."""
        return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=dtype))

    def merged(self, other: Growth) -> Growth:
        """Return the connections of both."""
        if self.positions.size == 0:
            return other
        return Growth.of(
            np.concatenate((self.positions, other.positions)),
            np.concatenate((self.weights, other.weights)),
        )

    def scaled_to(self, mean: float) -> Growth:
        """Return the same positions with weights scaled to a mean magnitude."""
        current = float(np.abs(self.weights).mean()) if self.weights.size else 0.0
        factor = self.weights.dtype.type(mean / current if current > 0 else 1.0)
        return Growth(self.positions, self.weights * factor)

    def rewiring(self, topology: Topology, kept: IntArray) -> Rewiring:
        """Return the rewiring that keeps the slots ``kept`` and grows these connections."""
        unweighted = grow_at(topology, kept, self.positions)
        by_slot = np.zeros(unweighted.topology.n_connections, dtype=self.weights.dtype)
        by_slot[slots_of(unweighted.topology, self.positions)] = self.weights
        return Rewiring(unweighted.topology, unweighted.origin, by_slot[unweighted.is_grown])


def bridges(
    before: LayerState,
    after: LayerState,
    neurons: IntArray,
    n_pairs: int,
    strength: float,
    rng: np.random.Generator,
) -> tuple[Growth, Growth]:
    """Connect idle neurons to the pairs of neurons with the largest bridging gradients (NeST).

    The bridging gradient of an input n of the first layer and an output m of the second is the
    gradient of a direct connection between them.  The pairs with the largest ones are assigned to
    the neurons in turn.  For each pair, a neuron gets one incoming and one outgoing connection
    of magnitude ``sqrt(|gradient|)``, with signs that lower the loss.  All are then scaled to
    ``strength`` times the mean weight of their layer.

    Returns
    -------
    incoming, outgoing : Growth
        The connections to grow in the first and in the second layer.
    """
    n_hidden, n_out = after.topology.shape
    signals = (signals_of(before)[0], signals_of(after)[1])
    shape = (before.topology.shape[0], n_out)
    no_connections, no_slots = Topology.from_pairs(shape, [], []), np.empty(0, dtype=np.int64)
    pairs = largest_absent(
        no_connections, no_slots, *signals, n_pairs * neurons.size, n_threads=before.n_threads
    )
    gradients = gradients_at(signals, n_out, pairs)
    by_size = np.argsort(-np.abs(gradients), kind="stable")
    pairs, gradients = pairs[by_size], gradients[by_size]
    hidden = neurons[np.arange(pairs.size) % max(1, neurons.size)]
    is_possible = is_allowed(before, pairs // n_out * n_hidden + hidden)
    is_possible &= is_allowed(after, hidden * n_out + pairs % n_out)
    pairs, gradients, hidden = pairs[is_possible], gradients[is_possible], hidden[is_possible]
    delta = np.sqrt(np.abs(gradients)) * np.where(rng.random(pairs.size) < 0.5, -1, 1)
    incoming = Growth.of(pairs // n_out * n_hidden + hidden, delta.astype(gradients.dtype))
    outgoing = Growth.of(
        hidden * n_out + pairs % n_out, (-np.sign(gradients) * delta).astype(gradients.dtype)
    )
    return (
        incoming.scaled_to(strength * mean_magnitude(before)),
        outgoing.scaled_to(strength * mean_magnitude(after)),
    )


def is_allowed(layer: LayerState, positions: IntArray) -> NDArray[np.bool_]:
    """Return which positions are allowed in a layer; all, if it has no limit."""
    if layer.allowed is None:
        return np.ones(positions.size, dtype=bool)
    return slots_of(layer.allowed, positions) >= 0


def mean_magnitude(layer: LayerState) -> float:
    """Return the mean magnitude of a layer's weights; 0 if it has none."""
    return float(np.abs(layer.weights).mean()) if layer.weights.size else 0.0
