"""RigL, the Rigged Lottery (Evci et al., ICML 2020).

Every so many steps a layer lets go of the connections with the smallest weights and grows as many
where the gradient of the loss is largest, among all positions it does not use.  The fraction
replaced falls along a cosine; after three quarters of training the topology stays.
"""

from __future__ import annotations

from dataclasses import dataclass

from ratoon.errors import check_fraction
from ratoon.evolution.base import LayerState, LayerwiseStrategy
from ratoon.evolution.clock import Clock, RewiringSchedule
from ratoon.evolution.grow import grow_largest_gradients
from ratoon.evolution.prune import strongest
from ratoon.topology import Rewiring


@dataclass(frozen=True)
class RigL(LayerwiseStrategy):
    """Prune the weakest connections, grow where the gradient is largest.

    Exact: the gradient of every absent position is looked at, block by block, unless a bound says
    that it cannot be among the largest; it is that of the minibatch about to be trained on.  New
    weights are 0, also at a position that was vacated just now and has the gradient to come back
    (the released code lets such a connection keep its weight).

    Cost per rewiring: ``n_in * n_out * batch`` multiplications at worst, a small part of them where
    neurons differ in how active they are: 0.2 to 1.3 s for 27,500 x 27,500 and batch 5 on one
    thread.  Memory for the new connections and one more array of slots, never for the gradient.

    Parameters
    ----------
    zeta : float, default=0.3
        Fraction of a layer's connections replaced at the first rewiring; called alpha in the
        paper, ``drop_fraction`` in its code.
    every : int, default=100
        Steps between two rewirings.
    until : float, default=0.75
        Fraction of training after which the topology stays as it is.
    anneal : {"constant", "linear", "cosine"}, default="cosine"
        How zeta goes to 0 by then.

    Examples
    --------
    >>> RigL().schedule
    RewiringSchedule(every=100, unit='step', until=0.75, anneal='cosine')
    """

    zeta: float = 0.3
    every: int = 100
    until: float = 0.75
    anneal: str = "cosine"

    def __post_init__(self) -> None:
        check_fraction("zeta", self.zeta, owner="RigL")
        _ = self.schedule  # raises if its parts make none

    @property
    def schedule(self) -> RewiringSchedule:
        """Every so many steps, up to a point."""
        return RewiringSchedule(self.every, "step", self.until, self.anneal)

    def rewire_layer(self, layer: LayerState, clock: Clock, seed: int) -> Rewiring:
        """Return the next topology of ``layer``, with as many connections as before."""
        n_connections = layer.topology.n_connections
        n_replaced = round(self.zeta * self.schedule.factor(clock) * n_connections)
        kept = strongest(layer.weights, n_replaced)
        return grow_largest_gradients(layer, kept, n_replaced, seed)
