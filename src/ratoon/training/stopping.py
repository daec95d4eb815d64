"""Early stopping: remember the best network, and know when to give up."""

from __future__ import annotations

from dataclasses import dataclass

from ratoon.network import SparseMLP


@dataclass
class EarlyStopping:
    """Stop after ``patience`` epochs without a better score, and go back to the best.

    Parameters
    ----------
    patience : int
        Epochs to wait for a better score.
    tol : float
        A score counts as better only if it is by more than this.
    restore_best : bool
        Keep a copy of the best network (and its memory), to return to it at the end.
    """

    patience: int = 10
    tol: float = 1e-4
    restore_best: bool = True
    best_score: float = -float("inf")
    best_epoch: int = -1
    best_network: SparseMLP | None = None
    n_waited: int = 0

    def observe(self, epoch: int, score: float, network: SparseMLP) -> bool:
        """Take note of an epoch's score, higher is better; true when it is time to stop."""
        if score > self.best_score + self.tol or self.best_epoch < 0:
            self.best_score, self.best_epoch, self.n_waited = score, epoch, 0
            if self.restore_best:
                self.best_network = network.copy()
        else:
            self.n_waited += 1
        return self.n_waited >= self.patience
