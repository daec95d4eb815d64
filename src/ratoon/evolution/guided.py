"""Guided SET: new connections of the first layer come from features related to the target.

With wide data and few samples, uniform growth gives most new connections to uninformative
features.  Gradients do not help: the training loss is near zero after a few epochs.  The strength
of the relation between each feature and the target can be computed from the training rows before
training, so the first layer draws inputs in proportion to a power of it.

All rewirings happen early in training, while the loss is still large.  New connections start at 0
and learn like all others, and pruning removes the noise of the initial weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ratoon.errors import InvalidInputError, InvalidParameterError
from ratoon.evolution.base import LayerState, ScheduledFraction, layer_seed
from ratoon.evolution.clock import Clock
from ratoon.evolution.grow import (
    draw_among,
    draw_by_strength,
    empty_allowed,
    grow_more,
    grow_uniformly,
)
from ratoon.evolution.prune import strongest_of_each_sign
from ratoon.evolution.set import check_grown, with_drawn_weights
from ratoon.kernels.absent import empty_among, grow_at
from ratoon.rng import derive_generator
from ratoon.topology import IntArray, Rewiring

MAX_POWER = 8.0


@dataclass(frozen=True)
class GuidedSET(ScheduledFraction):
    """Prune the weakest connections of each sign; early in training, grow from strong features.

    Pruning is that of `SET`.  In the first layer, a new connection has input i with a probability
    proportional to ``strength[i] ** power``, and any output.  All other layers grow uniformly,
    with weights of 0.

    Parameters
    ----------
    strength : array-like of shape (n_features,), optional
        Strength of the relation between each feature and the target; not negative.  Estimators
        set it to the F statistic of every feature over the training rows.  Without it all
        features are equally likely.
    power : float, default=2.0
        Exponent of the strength; with 0 all features are equally likely.
    zeta : float, default=0.9
        Fraction of a layer's connections replaced at the first rewiring.
    grown : {"zero", "init"}, default="zero"
        First weight of a new connection of the first layer: 0, or drawn as at the start.
    every : int, default=5
        Thousandths of training between two rewirings, rounded up to whole steps.
    until : float, default=0.05
        Fraction of training after which the topology no longer changes.
    anneal : {"constant", "linear", "cosine"}, default="cosine"
        How zeta falls to 0 by then.

    Notes
    -----
    Cost per rewiring: that of `SET`, and about 0.2 microseconds per new connection of the first
    layer.

    Examples
    --------
    >>> GuidedSET(zeta=0.5)
    GuidedSET(power=2.0, zeta=0.5, grown='zero', every=5, until=0.05, anneal='cosine')
    """

    unit = "permille"

    strength: ArrayLike | None = field(default=None, repr=False, compare=False)
    power: float = 2.0
    zeta: float = 0.9
    grown: str = "zero"
    every: int = 5
    until: float = 0.05
    anneal: str = "cosine"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.power <= MAX_POWER:
            raise InvalidParameterError(
                f"GuidedSET: `power` must be in [0, {MAX_POWER:g}], got {self.power!r}."
            )
        check_grown(self.grown, "GuidedSET")
        if self.strength is not None:
            try:
                strength = np.asarray(self.strength, dtype=np.float64)
            except (TypeError, ValueError, OverflowError):
                strength = np.empty((0, 0))
            if strength.ndim != 1 or not (np.isfinite(strength).all() and (strength >= 0).all()):
                raise InvalidInputError(
                    "GuidedSET: `strength` must be one finite number per feature, none below 0."
                )

    def rewire(self, layers: Sequence[LayerState], clock: Clock, seed: int) -> list[Rewiring]:
        """Return one rewiring per layer, with the same number of connections."""
        rewirings = []
        for index, layer in enumerate(layers):
            if layer.is_full:
                rewirings.append(Rewiring.unchanged(layer.topology))
                continue
            kept = strongest_of_each_sign(layer.weights, self.fraction(clock))
            n_grown = layer.topology.n_connections - kept.size
            grow = self._from_strong_inputs if index == 0 else grow_uniformly
            rewirings.append(grow(layer, kept, n_grown, layer_seed(seed, index)))
        return rewirings

    def _from_strong_inputs(
        self, layer: LayerState, kept: IntArray, n_grown: int, seed: int
    ) -> Rewiring:
        topology = layer.topology
        n_in, n_out = topology.shape
        rng = derive_generator(seed, "guided")
        strengths = (self._strengths(n_in)[:, None], np.ones((n_out, 1)))
        n_drawn = math.ceil(1.5 * n_grown)
        if layer.allowed is None:
            candidates = empty_among(topology, kept, draw_by_strength(strengths, n_drawn, rng))
        else:
            candidates = draw_among(empty_allowed(layer, kept), strengths, n_drawn, rng)
        chosen = np.sort(rng.choice(candidates, min(n_grown, candidates.size), replace=False))
        rewiring = grow_at(topology, kept, chosen)
        rewiring = grow_more(layer, rewiring, n_grown - chosen.size, seed)
        return rewiring if self.grown == "zero" else with_drawn_weights(layer, rewiring, seed)

    def _strengths(self, n_inputs: int) -> NDArray[np.float64]:
        if self.strength is None:
            return np.ones(n_inputs)
        strength = np.asarray(self.strength, dtype=np.float64)
        if strength.size != n_inputs:
            raise InvalidInputError(
                f"GuidedSET: `strength` has {strength.size} numbers for a network of {n_inputs}"
                f" features."
            )
        # Relative to the largest, so that the power does not overflow.
        return (strength / max(float(strength.max(initial=0.0)), 1e-300)) ** self.power
