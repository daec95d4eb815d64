"""`GuidedSET` with additional parameters, for the study of its forms.

Rewiring counted in epochs or steps, some new connections grown from anywhere, first weights less
spread than at the start, layers behind the first with a share of their own.  Left at their
defaults these change nothing, not a bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ratoon.evolution import Clock, GuidedSET, LayerState, RewiringSchedule, layer_seed
from ratoon.evolution.grow import grow_uniformly
from ratoon.evolution.prune import strongest_of_each_sign
from ratoon.topology import IntArray, Rewiring


@dataclass(frozen=True)
class Growth(GuidedSET):
    """A form of `GuidedSET`.

    Parameters
    ----------
    unit : {"permille", "epoch", "step"}
        What ``every`` counts.
    anywhere : float
        Share of the new connections of the first layer whose inputs are drawn with equal chances;
        with 1 and new weights of 0 this is SET.
    spread : float
        Factor on first weights that are drawn.
    behind : float, optional
        ``zeta`` of the layers behind the first, if it is another; 0 leaves them as they are.
    """

    unit: str = "permille"
    anywhere: float = 0.0
    spread: float = 1.0
    behind: float | None = None

    @property
    def schedule(self) -> RewiringSchedule:
        """Every few epochs, steps or thousandths of training, up to a point."""
        return RewiringSchedule(self.every, self.unit, self.until, self.anneal)

    def rewire(self, layers: Sequence[LayerState], clock: Clock, seed: int) -> list[Rewiring]:
        """Return one rewiring per layer, with as many connections as before."""
        if self.behind is None:
            return super().rewire(layers, clock, seed)
        rewirings = super().rewire(layers[:1], clock, seed)
        zeta = self.behind * self.schedule.factor(clock)
        for index, layer in enumerate(layers[1:], start=1):
            if layer.is_full or zeta == 0.0:
                rewirings.append(Rewiring.unchanged(layer.topology))
                continue
            kept = strongest_of_each_sign(layer.weights, zeta)
            n_grown = layer.topology.n_connections - kept.size
            rewirings.append(grow_uniformly(layer, kept, n_grown, layer_seed(seed, index)))
        return rewirings

    def _from_strong_inputs(
        self, layer: LayerState, kept: IntArray, n_grown: int, seed: int
    ) -> Rewiring:
        if self.anywhere == 1.0 and self.grown == "zero":
            return grow_uniformly(layer, kept, n_grown, seed)
        rewiring = super()._from_strong_inputs(layer, kept, n_grown, seed)
        if rewiring.grown_weights is None or self.spread == 1.0:
            return rewiring
        weights = (self.spread * rewiring.grown_weights).astype(layer.weights.dtype)
        return replace(rewiring, grown_weights=weights)

    def _strengths(self, n_inputs: int) -> NDArray[np.float64]:
        found = super()._strengths(n_inputs)
        if self.anywhere == 0.0:
            return found
        return np.asarray((1.0 - self.anywhere) * found / found.sum() + self.anywhere / n_inputs)
