"""DEEP R, Deep Rewiring (Bellec et al., ICLR 2018).

A connection keeps the sign it was born with.  After each step of the optimizer its weight takes a
small step towards zero and a small random one; if it crosses zero it goes dormant, and a connection
drawn at random among all dormant ones of the network, with a random sign and the weight 0, takes
its place.  The total never changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ratoon import kernels
from ratoon.arrays import Array
from ratoon.errors import InvalidParameterError
from ratoon.evolution.allocate import draw_shares
from ratoon.evolution.base import LayerState, Reweighted, State, StatefulStrategy, layer_seed
from ratoon.evolution.clock import Clock, RewiringSchedule
from ratoon.evolution.grow import grow_uniformly
from ratoon.rng import derive_generator, derive_seed
from ratoon.topology import Rewiring


@dataclass(frozen=True)
class DeepR(StatefulStrategy):
    """Let go of connections whose weight changes its sign, grow anywhere at random.

    With theta = sign * weight >= 0, and on top of what the optimizer does,
    ``theta -= lr * alpha + sqrt(2 * lr * temperature) * noise`` at each step.  Exact for
    ``every=1`` and an optimizer without momentum, which is what the paper trains with.  With
    ``every=n`` the shrinking and the noise of n steps are applied at once, and a weight may stray
    beyond zero until then.  A layer that is full when training starts is left as it is.

    Cost per rewiring: about 60 nanoseconds per connection, so that ``every=1`` makes steps several
    times slower; memory for the signs (one byte per connection) and one more array of slots.

    Parameters
    ----------
    alpha : float, default=1e-5
        How strongly weights are drawn to zero.
    temperature : float, default=2.5e-11
        How wide the random steps are.  The default gives those of the released code (1e-5 times
        the learning rate) at its learning rate of 0.5.
    every : int, default=1
        Steps between two rewirings.
    until : float, default=1.0
        Fraction of training after which the topology stays as it is.

    Examples
    --------
    >>> DeepR().schedule
    RewiringSchedule(every=1, unit='step', until=1.0, anneal='constant')
    """

    alpha: float = 1e-5
    temperature: float = 2.5e-11
    every: int = 1
    until: float = 1.0

    def __post_init__(self) -> None:
        for name in ("alpha", "temperature"):
            value = getattr(self, name)
            if not 0.0 <= value < math.inf:
                raise InvalidParameterError(f"DeepR: `{name}` must not be negative, got {value!r}.")
        _ = self.schedule  # raises if its parts make none

    @property
    def schedule(self) -> RewiringSchedule:
        """Every so many steps, up to a point."""
        return RewiringSchedule(self.every, "step", self.until)

    def start_state(self, layers: Sequence[LayerState], seed: int) -> State:
        """Return the sign of every connection: that of its first weight, random where it is 0."""
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
        """Return one rewiring per layer, with as many connections in all as before."""
        del clock
        moving = [i for i in range(len(layers)) if f"{i}.signs" in state]
        theta = {
            i: self._moved(layers[i], state[f"{i}.signs"], layer_seed(seed, i)) for i in moving
        }
        kept = {i: np.flatnonzero(~(theta[i] < 0)) for i in moving}
        n_dormant = sum(theta[i].size - kept[i].size for i in moving)
        room = [layers[i].n_positions - kept[i].size for i in moving]
        grown = draw_shares(n_dormant, room, derive_generator(seed, "shares"))
        rewirings = [Rewiring.unchanged(layer.topology) for layer in layers]
        after = dict(state)
        for i, n_grown in zip(moving, grown, strict=True):
            layer, key = layers[i], layer_seed(seed, i)
            rewiring = grow_uniformly(layer, kept[i], int(n_grown), key)
            fresh = draw_signs(int(n_grown), derive_seed(key, "signs"))
            signs = rewiring.carry(state[f"{i}.signs"], grown=fresh)
            weights = rewiring.carry(theta[i]) * signs
            rewirings[i] = Reweighted(rewiring.topology, rewiring.origin, None, weights)
            after[f"{i}.signs"] = signs
        return rewirings, after

    def _moved(self, layer: LayerState, signs: Array, seed: int) -> Array:
        """Return theta after shrinking and noise."""
        dtype = layer.weights.dtype
        reach = layer.learning_rate * self.every
        theta = layer.weights * signs
        theta -= dtype.type(self.alpha * reach)
        if self.temperature > 0.0:
            theta -= kernels.normal(
                theta.size,
                math.sqrt(2.0 * reach * self.temperature),
                dtype,
                seed=derive_seed(seed, "noise"),
                n_threads=layer.n_threads,
            )
        return theta


def draw_signs(size: int, seed: int) -> NDArray[np.int8]:
    """Draw signs, -1 or 1, equally likely.

    Examples
    --------
    >>> draw_signs(5, seed=0).tolist()
    [-1, 1, 1, 1, 1]
    """
    drawn = np.random.default_rng(seed).integers(0, 2, size=size, dtype=np.int8)
    return 2 * drawn - 1
