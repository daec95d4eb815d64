"""The lottery ticket experiment (Frankle and Carbin, ICLR 2019): a baseline, not a strategy.

Each round trains the network, prunes the smallest weights and resets the others to their initial
values.  The connections left, with their initial weights, are a *ticket*.  A round takes a whole
training and the first one starts from a dense network, so the model must fit into memory densely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ratoon.errors import InvalidParameterError, check_fraction
from ratoon.evolution.grow import retiled
from ratoon.evolution.prune import strongest
from ratoon.initialise import first_weights
from ratoon.kernels.absent import grow_at
from ratoon.layers import SparseLayer
from ratoon.rng import derive_seed


@dataclass(frozen=True, eq=False)
class LotteryRound:
    """One round: the layers before and after training."""

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
    """Train, prune by magnitude and reset the weights, for several rounds.

    After a round, the ``round(zeta * n)`` smallest of a layer's n weights are pruned; the others
    are reset to their initial values.

    Parameters
    ----------
    layers : sequence of SparseLayer
        The initial network, usually with full layers; it is not changed.
    train : callable
        Trains the layers it is passed, in place.
    rounds : int, default=5
        Number of trainings.
    zeta : float, default=0.2
        Fraction of a layer's connections pruned after a round.
    output_zeta : float, optional
        The same for the last layer; the default is half of zeta, as in the paper.

    Returns
    -------
    list of LotteryRound
        The first holds the whole network; each later one has fewer connections.

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
            pruned_and_reset(before, after, last_zeta if index == len(layers) - 1 else zeta)
            for index, (before, after) in enumerate(zip(ticket, trained, strict=True))
        ]
    return history


def pruned_and_reset(before: SparseLayer, after: SparseLayer, zeta: float) -> SparseLayer:
    """Return a layer as before training, without the connections weakest after training."""
    kept = strongest(after.weights, round(zeta * after.n_connections))
    layer = before.copy()
    layer.apply(retiled(grow_at(before.topology, kept, np.empty(0, dtype=np.int64))))
    return layer


def with_other_weights(ticket: Sequence[SparseLayer], seed: int) -> list[SparseLayer]:
    """Return the same topologies with new random weights: the control of the paper."""
    layers = [layer.copy() for layer in ticket]
    for index, layer in enumerate(layers):
        layer.weights = first_weights(
            layer.topology,
            seed=derive_seed(seed, "other weights", index),
            init=layer.init,
            dtype=layer.weights.dtype,
        )
    return layers
