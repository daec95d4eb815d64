"""Snapshot: all that a training needs to go on after an epoch, as a document and back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ratoon.errors import FormatError
from ratoon.history import History
from ratoon.kernels import current_isa
from ratoon.network import SparseMLP
from ratoon.storage.document import Document
from ratoon.storage.fields import Fields
from ratoon.storage.histories import history_from_arrays, history_to_arrays
from ratoon.storage.limits import EXACT_INTEGER
from ratoon.storage.rules import Violation
from ratoon.training import Training

KEYS = ("epochs_done", "stopping", "identity", "isa")
STOPPING_KEYS = ("best_score", "best_epoch", "n_waited", "has_best")


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Where a training stands between two epochs.

    Random numbers need no place here: they are functions of the plan's seed and the epoch.
    """

    epochs_done: int
    network: SparseMLP
    history: History
    stopping: dict[str, Any] | None = None
    best: SparseMLP | None = None

    @classmethod
    def of(cls, training: Training) -> Snapshot:
        """Look at a training between two epochs; arrays are shared with it."""
        stopping = training.stopping
        state = None
        if stopping is not None:
            state = {
                "best_score": float(stopping.best_score) if stopping.best_epoch >= 0 else None,
                "best_epoch": int(stopping.best_epoch),
                "n_waited": int(stopping.n_waited),
                "has_best": stopping.best_network is not None,
            }
        return cls(
            training.epochs_done,
            # Its list of layers is exchanged when training ends; what is in the list is not.
            SparseMLP(list(training.network.layers), training.network.scaling),
            History(list(training.history.records)),
            state,
            stopping.best_network if stopping is not None else None,
        )

    def copy(self) -> Snapshot:
        """Return the same with a network of its own, for while training goes on."""
        return replace(self, network=self.network.copy())

    def restore(self, training: Training) -> None:
        """Bring a training to where this snapshot was taken, in place."""
        training.network.layers = self.network.layers
        training.network.scaling = self.network.scaling
        training.history.records[:] = self.history.records
        training.epochs_done = self.epochs_done
        if training.stopping is not None and self.stopping is not None:
            score = self.stopping["best_score"]
            training.stopping.best_score = -float("inf") if score is None else score
            training.stopping.best_epoch = self.stopping["best_epoch"]
            training.stopping.n_waited = self.stopping["n_waited"]
            training.stopping.best_network = self.best
            training.should_stop = training.stopping.n_waited >= training.stopping.patience

    def to_document(self, identity: dict[str, Any]) -> Document:
        """Return a checkpoint; ``identity`` says of which training."""
        config = {
            "epochs_done": self.epochs_done,
            "stopping": self.stopping,
            "identity": identity,
            "isa": current_isa(),
        }
        networks = [self.network] if self.best is None else [self.network, self.best]
        return Document(config, history_to_arrays(self.history), networks, "checkpoint")

    @classmethod
    def from_document(cls, document: Document) -> tuple[Snapshot, dict[str, Any], str]:
        """Return the snapshot in a checkpoint, the identity of its training, and its processor's.

        Raises
        ------
        FormatError
            If the checkpoint holds something else.
        """
        try:
            fields = Fields(document.config, "content", KEYS)
            identity = fields.mapping("identity", 1000)
            epochs_done = fields.integer("epochs_done", 0, EXACT_INTEGER)
            stopping = _parse_stopping(fields["stopping"])
            isa = fields["isa"]
        except Violation as violation:
            raise FormatError(str(violation)) from None
        n_networks = 2 if stopping is not None and stopping["has_best"] else 1
        if len(document.networks) != n_networks or not isinstance(isa, str):
            raise FormatError("this checkpoint does not hold a training.")
        arrays = dict(document.arrays)
        history = history_from_arrays(arrays)
        if arrays:
            raise FormatError(f"this checkpoint holds unknown arrays: {sorted(arrays)[:3]}.")
        best = document.networks[1] if n_networks == 2 else None
        snapshot = cls(epochs_done, document.networks[0], history, stopping, best)
        return snapshot, identity, isa


def _parse_stopping(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    fields = Fields(value, "content.stopping", STOPPING_KEYS)
    best_epoch = fields.integer("best_epoch", -1, EXACT_INTEGER)
    return {
        "best_score": fields.number("best_score") if best_epoch >= 0 else None,
        "best_epoch": best_epoch,
        "n_waited": fields.integer("n_waited", 0, EXACT_INTEGER),
        "has_best": fields.flag("has_best"),
    }
