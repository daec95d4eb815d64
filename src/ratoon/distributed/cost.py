"""StepCost: the times of computing and sending a step, and how to train together with them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

MAX_SENDING = 1.0
"""Gradients are summed at every step if sending them takes at most this times their computation:
two ranks are then not slower than one, and more ranks are faster."""

AVERAGING_COST = 0.1
"""Otherwise averages are taken so rarely that sending takes this fraction of computing."""

N_REPEATS = 3


@dataclass(frozen=True)
class StepCost:
    """Seconds of one step on the slowest rank.

    Parameters
    ----------
    computing : float
        Computing the gradients of a rank's part of a minibatch.
    sending : float
        Summing one array of the size of all weights over the ranks.
    n_arrays : int
        Arrays of that size that an average sends: weights and the optimizer's state.
    """

    computing: float
    sending: float
    n_arrays: int = 1

    @property
    def average_every(self) -> int | None:
        """Steps between two averages, or None to sum gradients at every step.

        Examples
        --------
        >>> StepCost(computing=0.02, sending=0.01).average_every is None
        True
        >>> StepCost(computing=0.002, sending=0.05, n_arrays=2).average_every
        500
        """
        if self.sending <= MAX_SENDING * self.computing:
            return None
        return math.ceil(
            self.n_arrays * self.sending / (AVERAGING_COST * max(self.computing, 1e-9))
        )

    def __str__(self) -> str:
        every = self.average_every
        chosen = "gradients are summed" if every is None else f"averaging every {every} steps"
        return (
            f"computing a step takes {1000 * self.computing:.3g} ms, sending it"
            f" {1000 * self.sending:.3g} ms: {chosen}"
        )


def best_seconds(run: Callable[[], object]) -> float:
    """Return the shortest time of several runs, the one with the least interference."""
    spent = []
    for _ in range(N_REPEATS):
        started = time.perf_counter()
        run()
        spent.append(time.perf_counter() - started)
    return min(spent)
