"""What a step costs and what sending it costs, and how to train together in view of that."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

FAIR = 1.0
"""Gradients are added up at every step while sending them takes at most as long as computing them:
two ranks are then no slower than one, and more of them faster."""

LEAST = 0.1
"""Where that is not so, averages are taken so rarely that sending costs this share of computing."""

N_REPEATS = 3


@dataclass(frozen=True)
class StepCost:
    """Seconds of one step on the slowest rank.

    Parameters
    ----------
    computing : float
        Gradients of a rank's share of a minibatch.
    sending : float
        Adding up one array of the size of all weights over the ranks.
    n_arrays : int
        Arrays of that size that an average has to send: weights, and what the optimizer keeps.
    """

    computing: float
    sending: float
    n_arrays: int = 1

    @property
    def average_every(self) -> int | None:
        """None to add up gradients at every step, or how many steps to take between averages.

        Examples
        --------
        >>> StepCost(computing=0.02, sending=0.01).average_every is None
        True
        >>> StepCost(computing=0.002, sending=0.05, n_arrays=2).average_every
        500
        """
        if self.sending <= FAIR * self.computing:
            return None
        return math.ceil(self.n_arrays * self.sending / (LEAST * max(self.computing, 1e-9)))

    def __str__(self) -> str:
        every = self.average_every
        way = "gradients are added up" if every is None else f"averaging every {every} steps"
        return (
            f"a step computes for {1000 * self.computing:.3g} ms and would send for"
            f" {1000 * self.sending:.3g} ms: {way}"
        )


def best_seconds(run: Callable[[], object]) -> float:
    """Return the shortest time of several runs: the one least disturbed by others."""
    spent = []
    for _ in range(N_REPEATS):
        started = time.perf_counter()
        run()
        spent.append(time.perf_counter() - started)
    return min(spent)
