"""Early stopping: keep the best network, and stop when the score no longer improves."""

from __future__ import annotations

from dataclasses import dataclass

from ratoon.network import SparseMLP


@dataclass
class EarlyStopping:
    """Stop after ``patience`` epochs without a better score, and return to the best network.

    The score is that of the validation data or, without any, minus the training loss.

    Parameters
    ----------
    patience : int
        Epochs to wait for a better score.
    tol : float
        A score is better only if it exceeds the best one by more than this.
    restore_best : bool
        Keep a copy of the best network, and return to it at the end.
    """

    patience: int = 10
    tol: float = 1e-4
    restore_best: bool = True
    best_score: float = -float("inf")
    best_epoch: int = -1
    best_network: SparseMLP | None = None
    n_waited: int = 0

    @property
    def is_over(self) -> bool:
        """Whether it is time to stop."""
        return self.n_waited >= self.patience

    def observe(self, epoch: int, score: float, network: SparseMLP) -> bool:
        """Record the score of an epoch, higher is better; return whether it is time to stop."""
        if score > self.best_score + self.tol or self.best_epoch < 0:
            self.best_score, self.best_epoch, self.n_waited = score, epoch, 0
            if self.restore_best:
                self.best_network = network.copy()
        else:
            self.n_waited += 1
        return self.is_over

    def take_over(self, other: EarlyStopping) -> None:
        """Take over what another one has observed; the parameters stay."""
        self.best_score = other.best_score
        self.best_epoch = other.best_epoch
        self.best_network = other.best_network
        self.n_waited = other.n_waited
