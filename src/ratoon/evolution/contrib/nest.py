"""NeST, a neural network synthesis tool (Dai, Yin and Jha, IEEE Transactions on Computers, 2019).

Start from a small seed network; grow connections where the gradient is largest, and neurons where
they would bridge two others best; then prune the weakest connections away.  The number of
connections follows a curve: up to a peak, down to a final level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ratoon.errors import InvalidParameterError
from ratoon.evolution.base import LayerState, State, StatefulStrategy
from ratoon.evolution.clock import Clock, RewiringSchedule
from ratoon.evolution.contrib.neurons import Growth, bridges, idle_neurons
from ratoon.evolution.grow import gradients_at, laid_out_anew, largest_positions, signals_of
from ratoon.evolution.prune import strongest
from ratoon.kernels.absent import grow_at
from ratoon.rng import derive_generator
from ratoon.topology import Rewiring


@dataclass(frozen=True)
class NeST(StatefulStrategy):
    """Grow by gradient up to a peak, then prune by magnitude down to a final level.

    Growth looks at every absent position exactly as RigL does, but at one minibatch where the
    paper sums over an epoch.  A new connection starts at minus the learning rate times its
    gradient.  Neurons are grown out of a reserve: hidden neurons that start without any connection
    (see `ratoon.initialise.seed_topologies`); the widths of the network stay, idle neurons cost
    nothing but their bias.  Where fewer positions have a gradient than the curve asks for, fewer
    are grown.  Within a limit, bridges that it does not allow are not built.

    Cost per rewiring: while growing that of RigL, and the same once more per hidden layer with a
    reserve; while pruning about 25 nanoseconds per connection.

    Parameters
    ----------
    peak, final : float, default=3.0, 1.0
        Connections at the peak and at the end, as multiples of those at the start, layer by layer.
    grow_until, prune_until : float, default=0.4, 0.8
        Fractions of training at which the peak and the final level are reached.
    neuron_growth : float, default=0.1
        Neurons brought in at a rewiring while growing, as a fraction of those in use.
    pairs : int, default=4
        Pairs of neurons that each new neuron bridges.
    birth_strength : float, default=1.0
        Mean weight of a new neuron's connections, as a multiple of that of its layer.
    every : int, default=1
        Epochs between two rewirings.

    Examples
    --------
    >>> nest = NeST(peak=3.0, final=0.5)
    >>> [nest.level(progress) for progress in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
    [1.0, 2.0, 3.0, 1.75, 0.5, 0.5]
    """

    peak: float = 3.0
    final: float = 1.0
    grow_until: float = 0.4
    prune_until: float = 0.8
    neuron_growth: float = 0.1
    pairs: int = 4
    birth_strength: float = 1.0
    every: int = 1

    def __post_init__(self) -> None:
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
        _ = self.schedule  # raises if its parts make none

    @property
    def schedule(self) -> RewiringSchedule:
        """Every few epochs, until the final level is reached."""
        return RewiringSchedule(self.every, "epoch")

    def level(self, progress: float) -> float:
        """Return how many connections there are at a time, as a multiple of those at the start."""
        times = (0.0, self.grow_until, self.prune_until)
        return float(np.interp(progress, times, (1.0, self.peak, self.final)))

    def start_state(self, layers: Sequence[LayerState], seed: int) -> State:
        """Return how many connections the seed network has."""
        del seed
        return {"seed_counts": np.array([layer.topology.n_connections for layer in layers])}

    def rewire_from(
        self, state: State, layers: Sequence[LayerState], clock: Clock, seed: int
    ) -> tuple[list[Rewiring], State]:
        """Return one rewiring per layer, up or down to where the curve stands."""
        level = self.level(clock.progress)
        missing = [
            min(round(level * int(count)), layer.n_positions) - layer.topology.n_connections
            for count, layer in zip(state["seed_counts"], layers, strict=True)
        ]
        growths = [Growth.none(layer.weights.dtype) for layer in layers]
        if clock.progress <= self.grow_until:
            self._bring_in_neurons(growths, layers, missing, seed)
        rewirings = [
            self._grown(layer, growth, count) if count > 0 else pruned(layer, -count)
            for layer, growth, count in zip(layers, growths, missing, strict=True)
        ]
        return rewirings, state

    def _bring_in_neurons(
        self, growths: list[Growth], layers: Sequence[LayerState], missing: list[int], seed: int
    ) -> None:
        for i in range(len(layers) - 1):
            before, after = layers[i], layers[i + 1]
            idle = idle_neurons(before.topology, after.topology)
            in_use = before.topology.shape[1] - idle.size
            # A layer takes part in two hidden layers' growth: half of what it may grow for each.
            affordable = min(missing[i], missing[i + 1]) // (2 * self.pairs)
            n_new = min(math.ceil(self.neuron_growth * in_use), idle.size, affordable)
            if n_new <= 0:
                continue
            rng = derive_generator(seed, "bridges", i)
            incoming, outgoing = bridges(
                before, after, idle[:n_new], self.pairs, self.birth_strength, rng
            )
            growths[i] = growths[i].joined(incoming)
            growths[i + 1] = growths[i + 1].joined(outgoing)

    def _grown(self, layer: LayerState, growth: Growth, count: int) -> Rewiring:
        signals = signals_of(layer)
        kept = np.arange(layer.topology.n_connections)
        rest = count - growth.positions.size
        # Under ReLU idle neurons have no gradient; elsewhere a place found twice counts once.
        positions = largest_positions(layer, kept, signals, rest)
        gradients = gradients_at(signals, layer.topology.shape[1], positions)
        rate = layer.weights.dtype.type(-layer.learning_rate)
        growth = growth.joined(Growth(positions, rate * gradients))
        return laid_out_anew(growth.rewiring(layer.topology, kept))


def pruned(layer: LayerState, count: int) -> Rewiring:
    """Let go of the ``count`` weakest connections and grow none."""
    if count == 0:
        return Rewiring.unchanged(layer.topology)
    none = np.empty(0, dtype=np.int64)
    return laid_out_anew(grow_at(layer.topology, strongest(layer.weights, count), none))
