"""Pruning of whole neurons by importance (Liu et al. 2019; Curci, Mocanu and Pechenizkiy 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ratoon.errors import InvalidParameterError, check_field_types, check_fraction
from ratoon.evolution.base import LayerState, LayerwiseStrategy
from ratoon.evolution.clock import Clock, RewiringSchedule
from ratoon.evolution.contrib.neurons import importance
from ratoon.evolution.grow import retiled
from ratoon.evolution.set import SET
from ratoon.kernels.absent import grow_at
from ratoon.topology import Rewiring

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class NeuronPruning:
    """Rewire by another strategy, and prune the least important hidden neurons at intervals.

    The importance of hidden neuron j is ``sum_i |w[i, j]|``.  At each pruning, all connections of
    the neurons below a percentile of their layer are removed, so the number of connections falls.

    Parameters
    ----------
    percentile : float, default=20.0
        Neurons whose importance is below this percentile are pruned; neurons without connections
        do not count.
    warm_up : float, default=0.4
        Fraction of training before the first pruning; 200 of 500 epochs in the paper.
    prune_every : int, default=40
        Epochs between two prunings.
    base : LayerwiseStrategy, default=SET()
        Strategy that rewires after all other epochs.

    Notes
    -----
    A pruned neuron has no connections but keeps its index, so random growth may connect it again,
    as in the released code.

    Cost per pruning: about 15 nanoseconds and 30 bytes per connection.

    Examples
    --------
    >>> NeuronPruning(percentile=10.0).schedule.every
    1
    """

    keeps = "fewer"
    rewires_full_layers = True

    percentile: float = 20.0
    warm_up: float = 0.4
    prune_every: int = 40
    base: LayerwiseStrategy = field(default_factory=SET)

    def __post_init__(self) -> None:
        check_field_types(self)
        if not 0.0 <= self.percentile < 100.0:
            raise InvalidParameterError(
                f"NeuronPruning: `percentile` must be in [0, 100), got {self.percentile!r}."
            )
        check_fraction("warm_up", self.warm_up, owner="NeuronPruning")
        if self.prune_every < 1:
            raise InvalidParameterError(
                f"NeuronPruning: `prune_every` must be at least 1, got {self.prune_every!r}."
            )
        if not isinstance(self.base, LayerwiseStrategy):
            raise InvalidParameterError(
                f"NeuronPruning: `base` must be a strategy such as SET(), got {self.base!r}."
            )
        if self.base.schedule.unit != "epoch" or self.base.schedule.every != 1:
            raise InvalidParameterError(
                f"NeuronPruning: `base` must rewire after every epoch, got {self.base.schedule!r}."
            )

    @property
    def schedule(self) -> RewiringSchedule:
        """After every epoch, for pruning or for the other strategy."""
        return RewiringSchedule(1, "epoch")

    def prunes_at(self, clock: Clock) -> bool:
        """Whether neurons are pruned at this time.

        Examples
        --------
        >>> pruning = NeuronPruning(warm_up=0.4, prune_every=2)
        >>> [e for e in range(10) if pruning.prunes_at(Clock(7 * e, 7, 70))]
        [4, 6, 8]
        """
        first = max(1, -(-int(self.warm_up * clock.total_steps) // clock.steps_per_epoch))
        return clock.epoch >= first and (clock.epoch - first) % self.prune_every == 0

    def rewire(self, layers: Sequence[LayerState], clock: Clock, seed: int) -> list[Rewiring]:
        """Return one rewiring per layer."""
        if not self.prunes_at(clock):
            if clock.progress <= self.base.schedule.until:
                return self.base.rewire(layers, clock, seed)
            return [Rewiring.unchanged(layer.topology) for layer in layers]
        removed = [np.zeros(layers[0].topology.shape[0], dtype=bool)]
        removed += [unimportant(layer, self.percentile) for layer in layers[:-1]]
        removed += [np.zeros(layers[-1].topology.shape[1], dtype=bool)]
        return [
            without_neurons(layer, removed[index], removed[index + 1])
            for index, layer in enumerate(layers)
        ]


def unimportant(layer: LayerState, percentile: float) -> Flags:
    """Return which connected outputs of a layer are below the percentile of all connected ones.

    Examples
    --------
    >>> from ratoon.topology import Topology
    >>> topology = Topology.from_pairs((1, 4), [0, 0, 0], [0, 1, 3])
    >>> unimportant(LayerState(topology, np.array([3.0, -1.0, 2.0])), 50.0)
    array([False,  True, False, False])
    """
    strength = importance(layer)
    in_use = layer.topology.degrees()[1] > 0
    if not in_use.any():
        return np.zeros(strength.size, dtype=bool)
    weak: Flags = strength < np.percentile(strength[in_use], percentile)
    return weak & in_use


def without_neurons(
    layer: LayerState,
    removed_inputs: Flags,
    removed_outputs: Flags,
) -> Rewiring:
    """Prune all connections of the given inputs and outputs."""
    rows, columns = layer.topology.pairs()
    kept = np.flatnonzero(~(removed_inputs[rows] | removed_outputs[columns]))
    if kept.size == layer.topology.n_connections:
        return Rewiring.unchanged(layer.topology)
    return retiled(grow_at(layer.topology, kept, np.empty(0, dtype=np.int64)))
