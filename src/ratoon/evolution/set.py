"""SET, Sparse Evolutionary Training (Mocanu et al., Nature Communications 9:2383, 2018).

At each rewiring a layer lets go of the fraction ``zeta`` of its connections that are nearest to
zero, judged apart for positive and negative weights as in the paper, and grows as many new ones
at random.  Its number of connections never changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ratoon import kernels
from ratoon.errors import InvalidParameterError, check_fraction
from ratoon.evolution.base import LayerState, LayerwiseStrategy
from ratoon.evolution.clock import Clock, RewiringSchedule
from ratoon.evolution.grow import grow_uniformly
from ratoon.evolution.prune import strongest_of_each_sign
from ratoon.initialise import weight_scale
from ratoon.layers import SparseLayer
from ratoon.rng import derive_seed
from ratoon.topology import Rewiring

GROWN_WEIGHTS = ("init", "zero")


@dataclass(frozen=True)
class SET(LayerwiseStrategy):
    """Prune the weakest connections of each sign, grow as many at random.

    Cost per rewiring: about 15 nanoseconds per connection on one thread; memory for one more
    array of indices.

    Parameters
    ----------
    zeta : float, default=0.3
        Fraction of a layer's connections replaced at each rewiring, in [0, 1).  The same
        quantity is called ``drop_fraction`` in RigL and ``prune_rate`` in SNFS.
    grown : {"init", "zero"}, default="init"
        First weight of a new connection: drawn as at the start of training, as the paper does, or
        0, which leaves the network's outputs as they were.
    every : int, default=1
        Epochs between two rewirings.
    until : float, default=1.0
        Fraction of training after which the topology stays as it is.
    anneal : {"constant", "linear", "cosine"}, default="constant"
        How zeta goes to 0 by then, if it does.

    Examples
    --------
    >>> SET(zeta=0.2)
    SET(zeta=0.2, grown='init', every=1, until=1.0, anneal='constant')
    """

    zeta: float = 0.3
    grown: str = "init"
    every: int = 1
    until: float = 1.0
    anneal: str = "constant"

    def __post_init__(self) -> None:
        check_fraction("zeta", self.zeta, owner="SET")
        if self.grown not in GROWN_WEIGHTS:
            raise InvalidParameterError(
                f"SET: `grown` must be one of {GROWN_WEIGHTS}, got {self.grown!r}."
            )
        _ = self.schedule  # raises if its parts make none

    @property
    def schedule(self) -> RewiringSchedule:
        """Every few epochs, up to a point."""
        return RewiringSchedule(self.every, "epoch", self.until, self.anneal)

    def rewire_layer(self, layer: LayerState, clock: Clock, seed: int) -> Rewiring:
        """Return the next topology of ``layer``, with as many connections as before."""
        kept = strongest_of_each_sign(layer.weights, self.zeta * self.schedule.factor(clock))
        n_grown = layer.topology.n_connections - kept.size
        # A position just vacated may be drawn again; the authors' code allows that too.
        rewiring = grow_uniformly(layer, kept, n_grown, seed)
        if self.grown == "zero":
            return rewiring
        sigma = weight_scale(layer.topology, layer.init)
        return replace(
            rewiring,
            grown_weights=kernels.normal(
                n_grown,
                sigma,
                layer.weights.dtype,
                seed=derive_seed(seed, "grown weights"),
                n_threads=layer.n_threads,
            ),
        )

    def rewire_in_place(self, layer: SparseLayer, clock: Clock, seed: int, n_threads: int) -> int:
        """Do the same natively, moving weights and optimizer state along in place."""
        layer.topology, n_grown = kernels.rewire_by_sign(
            layer.topology,
            layer.stored,
            layer.state,
            self.zeta * self.schedule.factor(clock),
            seed=seed,
            sigma=weight_scale(layer.topology, layer.init) if self.grown == "init" else 0.0,
            weight_seed=derive_seed(seed, "grown weights"),
            n_threads=n_threads,
        )
        return n_grown


def annealed_set(zeta: float = 0.3) -> SET:
    """Return SET with annealing, the default of estimators.

    New connections start at 0, so that a rewiring changes no output.  The replaced fraction falls
    to 0 along a cosine, and the topology stays fixed for the second half of training.  SET as
    published replaces a constant fraction by random weights after every epoch.

    Parameters
    ----------
    zeta : float, default=0.3
        Fraction of a layer's connections replaced at the first rewiring.

    Returns
    -------
    SET
        The strategy.

    Examples
    --------
    >>> annealed_set(0.2)
    SET(zeta=0.2, grown='zero', every=1, until=0.5, anneal='cosine')
    """
    return SET(zeta, grown="zero", every=1, until=0.5, anneal="cosine")
