"""What a split network costs: memory of a rank, and what a step sends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ratoon.initialise import connections_wanted

INDEX_BYTES = 4


@dataclass(frozen=True)
class SplitCost:
    """Cost of training a network over several ranks.

    Parameters
    ----------
    n_connections : int
        Connections of the whole network.
    connection_bytes : int
        Memory of a rank for indices, weights and optimizer state.
    working_bytes : int
        Memory of a rank for activations and errors of a minibatch.
    sent_bytes : int
        What a rank receives and sends in one step.
    """

    n_connections: int
    connection_bytes: int
    working_bytes: int
    sent_bytes: int

    @property
    def rank_bytes(self) -> int:
        """Memory of a rank, samples left out."""
        return self.connection_bytes + self.working_bytes


def split_cost(
    widths: Sequence[int],
    n_ranks: int,
    *,
    epsilon: float | None = None,
    density: float | None = None,
    batch_size: int = 32,
    n_states: int = 1,
    number_bytes: int = 4,
) -> SplitCost:
    """Return the cost of a network over ``n_ranks``, with one part per rank.

    Every part of a layer's activations is broadcast twice per step, forward and backward, and its
    errors are summed once.

    Examples
    --------
    >>> cost = split_cost((54_675, 500_000, 500_000, 18), 2, epsilon=10, batch_size=5)
    >>> round(cost.rank_bytes / 1e6), round(cost.sent_bytes / 1e6)
    (173, 96)
    """
    connections = sum(
        connections_wanted(shape, epsilon=epsilon, density=density) for shape in pairwise(widths)
    )
    lanes = 1 if batch_size == 1 else -(-batch_size // 8) * 8
    of_neurons = sum(widths[1:])
    own = -(-of_neurons // n_ranks)
    largest_part = -(-max(widths[1:]) // n_ranks)
    row = lanes * number_bytes
    working = widths[0] * row + (own + 4 * largest_part) * row
    per_connection = INDEX_BYTES + number_bytes * (1 + n_states)
    hidden = sum(widths[1:-1])
    return SplitCost(
        connections,
        -(-connections // n_ranks) * per_connection,
        working,
        3 * hidden * row if n_ranks > 1 else 0,
    )
