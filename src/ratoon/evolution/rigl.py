"""RigL, the Rigged Lottery (Evci et al., ICML 2020)."""

from __future__ import annotations

from dataclasses import dataclass

from ratoon.evolution.base import LayerState, LayerwiseStrategy, ScheduledFraction
from ratoon.evolution.clock import Clock
from ratoon.evolution.grow import grow_largest_gradients
from ratoon.evolution.prune import check_removal, pruning_scores, strongest
from ratoon.topology import Rewiring


@dataclass(frozen=True)
class RigL(ScheduledFraction, LayerwiseStrategy):
    """Prune the weakest connections, grow where the gradient is largest.

    Of a layer's n connections, the ``round(zeta(t) * n)`` with the smallest ``|w|`` are pruned.
    As many are grown at the empty positions with the largest ``|x[i] @ d[j]|``, where x are the
    activations and d the errors of the next minibatch.  New weights are 0.

    Parameters
    ----------
    zeta : float, default=0.3
        Fraction of a layer's connections replaced at the first rewiring: alpha in the paper,
        ``drop_fraction`` in its code.
    every : int, default=100
        Steps between two rewirings.
    until : float, default=0.75
        Fraction of training after which the topology no longer changes.
    anneal : {"constant", "linear", "cosine"}, default="cosine"
        How zeta falls to 0 by then.
    removal : {"magnitude", "relative"}, default="magnitude"
        Whether the smallest ``|w|`` are pruned, as in the paper, or those with the smallest
        relative importance (see `ratoon.evolution.prune.relative_importance`).

    Notes
    -----
    The search is exact: it skips a block of positions only if a bound shows that none of them can
    be among the largest.  A position that has just been pruned can be grown again, with a weight
    of 0; in the released code it keeps its weight.

    Cost per rewiring: ``n_in * n_out * batch`` multiplications at worst, usually a small part of
    them: 0.2 to 1.3 s for 27,500 x 27,500 and a batch of 5 on one thread.  Memory for the new
    connections and one array of slots; the gradient is never stored.

    Examples
    --------
    >>> RigL().schedule
    RewiringSchedule(every=100, unit='step', until=0.75, anneal='cosine')
    """

    unit = "step"

    zeta: float = 0.3
    every: int = 100
    until: float = 0.75
    anneal: str = "cosine"
    removal: str = "magnitude"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_removal(self.removal, "RigL")

    def rewire_layer(self, layer: LayerState, clock: Clock, seed: int) -> Rewiring:
        """Return the next topology of ``layer``, with the same number of connections."""
        count = self.n_replaced(layer, clock)
        kept = strongest(pruning_scores(layer, self.removal), count)
        return grow_largest_gradients(layer, kept, count, seed)
