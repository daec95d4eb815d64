"""DEEP R, Deep Rewiring (Bellec et al., ICLR 2018)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ratoon import kernels
from ratoon.arrays import Array
from ratoon.errors import InvalidParameterError, check_field_types
from ratoon.evolution.allocate import draw_split
from ratoon.evolution.base import (
    LayerState,
    Reweighted,
    Scheduled,
    State,
    StatefulStrategy,
    layer_seed,
)
from ratoon.evolution.clock import Clock
from ratoon.evolution.grow import grow_uniformly
from ratoon.rng import derive_generator, derive_seed
from ratoon.topology import Rewiring


@dataclass(frozen=True)
class DeepR(Scheduled, StatefulStrategy):
    """Prune connections whose weight changes its sign, grow as many at random.

    Every connection has a fixed sign.  With ``theta = sign * weight >= 0``, each step computes
    ``theta -= lr * alpha + sqrt(2 * lr * temperature) * noise`` after the optimizer's update.  A
    connection with ``theta < 0`` is pruned.  A connection at a random empty position of the
    network replaces it, with a random sign and a weight of 0.

    Parameters
    ----------
    alpha : float, default=1e-5
        Strength of the decay towards zero.
    temperature : float, default=2.5e-11
        Variance of the noise, up to a factor of ``2 * lr``.  The default gives the noise of the
        released code (1e-5 times the learning rate) at its learning rate of 0.5.
    every : int, default=1
        Steps between two rewirings.
    until : float, default=1.0
        Fraction of training after which the topology no longer changes.

    Notes
    -----
    Exact for ``every=1`` and an optimizer without momentum, as in the paper.  With ``every=n`` the
    decay and the noise of n steps are applied at once, and until then a weight may have the wrong
    sign.  A layer that is full when training starts does not take part.

    Cost per rewiring: about 60 nanoseconds per connection, so ``every=1`` makes steps several
    times slower; memory for the signs (one byte per connection) and one more array of slots.

    Examples
    --------
    >>> DeepR().schedule
    RewiringSchedule(every=1, unit='step', until=1.0, anneal='constant')
    """

    keeps = "total"
    unit = "step"

    alpha: float = 1e-5
    temperature: float = 2.5e-11
    every: int = 1
    until: float = 1.0

    def __post_init__(self) -> None:
        check_field_types(self)
        for name in ("alpha", "temperature"):
            value = getattr(self, name)
            if not 0.0 <= value < math.inf:
                raise InvalidParameterError(f"DeepR: `{name}` must not be negative, got {value!r}.")
        super().__post_init__()

    def start_state(self, layers: Sequence[LayerState], seed: int) -> State:
        """Return the sign of every connection: that of its weight; random for a weight of 0."""
        state: State = {}
        for index, layer in enumerate(layers):
            if layer.is_full:
                continue
            drawn = draw_signs(layer.weights.size, derive_seed(seed, "first signs", index))
            signs = np.where(layer.weights == 0, drawn, np.sign(layer.weights))
            state[f"{index}.signs"] = signs.astype(np.int8)
        return state

    def rewire_from(
        self, state: State, layers: Sequence[LayerState], clock: Clock, seed: int
    ) -> tuple[list[Rewiring], State]:
        """Return one rewiring per layer, with the same total number of connections."""
        del clock
        moving = [i for i in range(len(layers)) if f"{i}.signs" in state]
        theta = {
            i: self._decayed(layers[i], state[f"{i}.signs"], layer_seed(seed, i)) for i in moving
        }
        kept = {i: np.flatnonzero(~(theta[i] < 0)) for i in moving}
        n_dormant = sum(theta[i].size - kept[i].size for i in moving)
        n_empty = [layers[i].n_positions - kept[i].size for i in moving]
        grown = draw_split(n_dormant, n_empty, derive_generator(seed, "shares"))
        rewirings = [Rewiring.unchanged(layer.topology) for layer in layers]
        after = dict(state)
        for i, n_grown in zip(moving, grown, strict=True):
            layer, key = layers[i], layer_seed(seed, i)
            rewiring = grow_uniformly(layer, kept[i], int(n_grown), key)
            new_signs = draw_signs(int(n_grown), derive_seed(key, "signs"))
            signs = rewiring.carry(state[f"{i}.signs"], grown=new_signs)
            weights = rewiring.carry(theta[i]) * signs
            rewirings[i] = Reweighted(rewiring.topology, rewiring.origin, None, weights)
            after[f"{i}.signs"] = signs
        return rewirings, after

    def _decayed(self, layer: LayerState, signs: Array, seed: int) -> Array:
        """Return theta after decay and noise."""
        dtype = layer.weights.dtype
        step_size = layer.learning_rate * self.every
        theta = layer.weights * signs
        theta -= dtype.type(self.alpha * step_size)
        if self.temperature > 0.0:
            theta -= kernels.normal(
                theta.size,
                math.sqrt(2.0 * step_size * self.temperature),
                dtype,
                seed=derive_seed(seed, "noise"),
                n_threads=layer.n_threads,
            )
        return theta


def draw_signs(size: int, seed: int) -> NDArray[np.int8]:
    """Draw signs: -1 or 1 with equal probability.

    Examples
    --------
    >>> draw_signs(5, seed=0).tolist()
    [-1, 1, 1, 1, 1]
    """
    drawn = np.random.default_rng(seed).integers(0, 2, size=size, dtype=np.int8)
    return 2 * drawn - 1
