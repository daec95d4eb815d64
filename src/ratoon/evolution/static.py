"""Static: the topology a network starts with is the one it ends with.

The baseline MLP-FixProb of Mocanu et al., Nature Communications 9:2383, 2018.
"""

from __future__ import annotations

from dataclasses import dataclass

from ratoon.evolution.base import LayerState, LayerwiseStrategy
from ratoon.evolution.clock import Clock, RewiringSchedule
from ratoon.topology import Rewiring


@dataclass(frozen=True)
class Static(LayerwiseStrategy):
    """Never rewire.  The baseline called MLP-FixProb in the SET papers.

    Exact: nothing happens.  Cost per rewiring: none, as there is none.

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
        """Return the layer's topology as it is."""
        del clock, seed
        return Rewiring.unchanged(layer.topology)
