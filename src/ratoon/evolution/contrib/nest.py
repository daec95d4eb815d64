"""NeST, a neural network synthesis tool (Dai, Yin and Jha, IEEE Trans. on Computers, 2019)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ratoon.errors import InvalidParameterError, check_field_types
from ratoon.evolution.base import LayerState, Scheduled, State, StatefulStrategy
from ratoon.evolution.clock import Clock
from ratoon.evolution.contrib.neurons import Growth, bridges, idle_neurons
from ratoon.evolution.grow import gradients_at, largest_positions, retiled, signals_of
from ratoon.evolution.prune import strongest
from ratoon.kernels.absent import grow_at
from ratoon.rng import derive_generator
from ratoon.topology import Rewiring


@dataclass(frozen=True)
class NeST(Scheduled, StatefulStrategy):
    """Grow where the gradient is largest up to a peak, then prune the weakest to a final level.

    The number of connections of each layer follows a piecewise linear curve over training: from 1
    to ``peak`` times the initial number at ``grow_until``, then to ``final`` times at
    ``prune_until``.  The weight of a new connection is minus the learning rate times its gradient.
    While the network grows, idle hidden neurons are also connected: each to pairs of neurons whose
    direct connection would have the largest gradients.

    Parameters
    ----------
    peak, final : float, default=3.0, 1.0
        Connections at the peak and at the end, as multiples of those at the start, layer by layer.
    grow_until, prune_until : float, default=0.4, 0.8
        Fractions of training at which the peak and the final level are reached.
    neuron_growth : float, default=0.1
        Neurons added at a rewiring while growing, as a fraction of those in use.
    pairs : int, default=4
        Pairs of neurons that each new neuron connects.
    birth_strength : float, default=1.0
        Mean weight of a new neuron's connections, as a multiple of that of its layer.
    every : int, default=1
        Epochs between two rewirings.

    Notes
    -----
    Every empty position is searched as in `RigL`, but for one minibatch, where the paper sums over
    an epoch.  New neurons are taken from hidden neurons that start without connections (see
    `ratoon.initialise.seed_topologies`); the widths of the network do not change, and idle neurons
    cost only their bias.  If fewer positions than needed have a gradient other than 0, fewer are
    grown.  In a layer with a limit, connections outside it are not made.

    Cost per rewiring: while growing that of `RigL`, and the same again per hidden layer with idle
    neurons; while pruning about 25 nanoseconds per connection.

    Examples
    --------
    >>> nest = NeST(peak=3.0, final=0.5)
    >>> [nest.level(progress) for progress in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
    [1.0, 2.0, 3.0, 1.75, 0.5, 0.5]
    """

    keeps = "budget"

    peak: float = 3.0
    final: float = 1.0
    grow_until: float = 0.4
    prune_until: float = 0.8
    neuron_growth: float = 0.1
    pairs: int = 4
    birth_strength: float = 1.0
    every: int = 1

    def __post_init__(self) -> None:
        check_field_types(self)
        if not (self.peak >= 1.0 and 0.0 < self.final <= self.peak < math.inf):
            raise InvalidParameterError(
                f"NeST: `peak` must be at least 1 and `final` in (0, peak], got"
                f" peak={self.peak!r}, final={self.final!r}."
            )
        if not 0.0 < self.grow_until < self.prune_until <= 1.0:
            raise InvalidParameterError(
                f"NeST: `grow_until` and `prune_until` must be ascending in (0, 1], got"
                f" {self.grow_until!r} and {self.prune_until!r}."
            )
        for name in ("neuron_growth", "birth_strength"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise InvalidParameterError(
                    f"NeST: `{name}` must not be negative, got {getattr(self, name)!r}."
                )
        if self.pairs < 1:
            raise InvalidParameterError(f"NeST: `pairs` must be at least 1, got {self.pairs!r}.")
        super().__post_init__()

    def level(self, progress: float) -> float:
        """Return the target number of connections, as a multiple of the number at the start."""
        times = (0.0, self.grow_until, self.prune_until)
        return float(np.interp(progress, times, (1.0, self.peak, self.final)))

    @property
    def rewires_full_layers(self) -> bool:
        """Whether a full layer is pruned: if it ends with fewer connections than at the start."""
        return self.final < 1.0

    def budget(self, start: Sequence[LayerState], clock: Clock) -> list[int]:
        """Return the number of connections of every layer after a rewiring at this time.

        There are fewer if not enough empty positions have a gradient.
        """
        level = self.level(clock.progress)
        return [
            min(round(level * layer.topology.n_connections), layer.n_positions) for layer in start
        ]

    def start_state(self, layers: Sequence[LayerState], seed: int) -> State:
        """Return the number of connections per layer at the start."""
        del seed
        return {"seed_counts": np.array([layer.topology.n_connections for layer in layers])}

    def rewire_from(
        self, state: State, layers: Sequence[LayerState], clock: Clock, seed: int
    ) -> tuple[list[Rewiring], State]:
        """Return one rewiring per layer, to the number of connections given by the curve."""
        level = self.level(clock.progress)
        missing = [
            min(round(level * int(count)), layer.n_positions) - layer.topology.n_connections
            for count, layer in zip(state["seed_counts"], layers, strict=True)
        ]
        growths = [Growth.empty(layer.weights.dtype) for layer in layers]
        if clock.progress <= self.grow_until:
            self._add_neurons(growths, layers, missing, seed)
        rewirings = [
            self._grown(layer, growth, count) if count > 0 else pruned(layer, -count)
            for layer, growth, count in zip(layers, growths, missing, strict=True)
        ]
        return rewirings, state

    def _add_neurons(
        self, growths: list[Growth], layers: Sequence[LayerState], missing: list[int], seed: int
    ) -> None:
        for i in range(len(layers) - 1):
            before, after = layers[i], layers[i + 1]
            idle = idle_neurons(before.topology, after.topology)
            in_use = before.topology.shape[1] - idle.size
            # A layer is used by two hidden layers: each gets half of the connections to grow.
            affordable = min(missing[i], missing[i + 1]) // (2 * self.pairs)
            n_new = min(math.ceil(self.neuron_growth * in_use), idle.size, affordable)
            if n_new <= 0:
                continue
            rng = derive_generator(seed, "bridges", i)
            incoming, outgoing = bridges(
                before, after, idle[:n_new], self.pairs, self.birth_strength, rng
            )
            growths[i] = growths[i].merged(incoming)
            growths[i + 1] = growths[i + 1].merged(outgoing)

    def _grown(self, layer: LayerState, growth: Growth, count: int) -> Rewiring:
        signals = signals_of(layer)
        kept = np.arange(layer.topology.n_connections)
        rest = count - growth.positions.size
        # With ReLU, idle neurons have no gradient; otherwise a position found twice counts once.
        positions = largest_positions(layer, kept, signals, rest)
        gradients = gradients_at(signals, layer.topology.shape[1], positions)
        rate = layer.weights.dtype.type(-layer.learning_rate)
        growth = growth.merged(Growth(positions, rate * gradients))
        return retiled(growth.rewiring(layer.topology, kept))


def pruned(layer: LayerState, count: int) -> Rewiring:
    """Prune the ``count`` weakest connections and grow none."""
    if count == 0:
        return Rewiring.unchanged(layer.topology)
    none = np.empty(0, dtype=np.int64)
    return retiled(grow_at(layer.topology, strongest(layer.weights, count), none))
