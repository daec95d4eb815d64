"""Static: the topology never changes (MLP-FixProb in Mocanu et al., 2018)."""

from __future__ import annotations

from dataclasses import dataclass

from ratoon.evolution.base import LayerState, LayerwiseStrategy
from ratoon.evolution.clock import Clock, RewiringSchedule
from ratoon.topology import Rewiring


@dataclass(frozen=True)
class Static(LayerwiseStrategy):
    """Never rewire: the baseline that the SET papers call MLP-FixProb.

    Examples
    --------
    >>> Static().schedule.until
    0.0
    """

    @property
    def schedule(self) -> RewiringSchedule:
        """Never."""
        return RewiringSchedule(until=0.0)

    def rewire_layer(self, layer: LayerState, clock: Clock, seed: int) -> Rewiring:
        """Return the topology of the layer unchanged."""
        del clock, seed
        return Rewiring.unchanged(layer.topology)
