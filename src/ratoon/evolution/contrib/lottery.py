"""The lottery ticket experiment (Frankle and Carbin, ICLR 2019): not a strategy, a baseline.

Train, prune the smallest weights, put the others back to where they started, train again, and so on
for several rounds.  What is left, with its first weights, is a *ticket*.  It takes a whole training
per round and begins with all connections there can be, so it is for models that fit densely.
Exact as published, with one pruning fraction for hidden layers and one for the last.  Cost between
two rounds: sorting each layer's magnitudes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ratoon.errors import InvalidParameterError, check_fraction
from ratoon.evolution.grow import laid_out_anew
from ratoon.evolution.prune import strongest
from ratoon.initialise import first_weights
from ratoon.kernels.absent import grow_at
from ratoon.layers import SparseLayer
from ratoon.rng import derive_seed


@dataclass(frozen=True, eq=False)
class LotteryRound:
    """One round: the layers it started from, and the same after training."""

    ticket: list[SparseLayer]
    trained: list[SparseLayer]

    @property
    def density(self) -> float:
        """Connections divided by positions, over all layers."""
        positions = sum(layer.topology.n_positions for layer in self.ticket)
        return sum(layer.n_connections for layer in self.ticket) / positions


def find_ticket(
    layers: Sequence[SparseLayer],
    train: Callable[[list[SparseLayer]], None],
    *,
    rounds: int = 5,
    zeta: float = 0.2,
    output_zeta: float | None = None,
) -> list[LotteryRound]:
    """Train, prune by magnitude, rewind, repeat.

    Parameters
    ----------
    layers : sequence of SparseLayer
        The network to begin with, usually with full layers; left as it is.
    train : callable
        Trains the layers it is given in place.
    rounds : int, default=5
        Trainings.
    zeta : float, default=0.2
        Fraction of a layer's connections pruned after a round.
    output_zeta : float, optional
        The same for the last layer; half of zeta if not given, as in the paper.

    Returns
    -------
    list of LotteryRound
        The first is the whole network; each later one has fewer connections.

    Examples
    --------
    >>> from ratoon.layers import make_layer
    >>> layers = [make_layer(shape, density=1.0, seed=0) for shape in ((10, 10), (10, 2))]
    >>> found = find_ticket(layers, lambda layers: None, rounds=3)
    >>> [[layer.n_connections for layer in each.ticket] for each in found]
    [[100, 20], [80, 18], [64, 16]]
    """
    check_fraction("zeta", zeta, owner="find_ticket")
    last_zeta = 0.5 * zeta if output_zeta is None else output_zeta
    check_fraction("output_zeta", last_zeta, owner="find_ticket")
    if rounds < 1:
        raise InvalidParameterError(f"find_ticket: `rounds` must be at least 1, got {rounds!r}.")
    ticket = [layer.copy() for layer in layers]
    history = []
    for _ in range(rounds):
        trained = [layer.copy() for layer in ticket]
        train(trained)
        history.append(LotteryRound(ticket, trained))
        ticket = [
            rewound(before, after, last_zeta if index == len(layers) - 1 else zeta)
            for index, (before, after) in enumerate(zip(ticket, trained, strict=True))
        ]
    return history


def rewound(before: SparseLayer, after: SparseLayer, zeta: float) -> SparseLayer:
    """Return a layer as before training, without the connections that training left weakest."""
    kept = strongest(after.weights, round(zeta * after.n_connections))
    layer = before.copy()
    layer.apply(laid_out_anew(grow_at(before.topology, kept, np.empty(0, dtype=np.int64))))
    return layer


def with_other_weights(ticket: Sequence[SparseLayer], seed: int) -> list[SparseLayer]:
    """Return the same topologies with first weights drawn anew: the paper's control."""
    layers = [layer.copy() for layer in ticket]
    for index, layer in enumerate(layers):
        layer.weights = first_weights(
            layer.topology,
            seed=derive_seed(seed, "other weights", index),
            init=layer.init,
            dtype=layer.weights.dtype,
        )
    return layers
