"""Snapshot: all that a training needs to go on after an epoch, as a document and back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ratoon.errors import FormatError
from ratoon.evolution import State
from ratoon.history import History
from ratoon.kernels import current_isa
from ratoon.network import SparseMLP
from ratoon.storage.document import Document
from ratoon.storage.fields import Fields
from ratoon.storage.histories import history_from_arrays, history_to_arrays
from ratoon.storage.limits import EXACT_INTEGER, MAX_LAYERS
from ratoon.storage.rules import Violation, require
from ratoon.training import Training

KEYS = ("epochs_done", "rewired", "evolving", "stopping", "identity", "isa")
STOPPING_KEYS = ("best_score", "best_epoch", "n_waited", "has_best")
EVOLUTION = "evolution/"


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Where a training stands between two epochs.

    Random numbers need no place here: they are functions of the plan's seed and the epoch.
    """

    epochs_done: int
    network: SparseMLP
    history: History
    rewired: list[int]
    evolution: State | None = None
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
            list(training.rewired_by_layer),
            None if training.evolution_state is None else dict(training.evolution_state),
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
        training.rewired_by_layer = list(self.rewired)
        training.evolution_state = self.evolution
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
            "rewired": [int(count) for count in self.rewired],
            "evolving": self.evolution is not None,
            "stopping": self.stopping,
            "identity": identity,
            "isa": current_isa(),
        }
        arrays = history_to_arrays(self.history)
        for name, values in (self.evolution or {}).items():
            arrays[EVOLUTION + name] = values
        networks = [self.network] if self.best is None else [self.network, self.best]
        return Document(config, arrays, networks, "checkpoint")

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
            rewired = _parse_counts(fields.listing("rewired", 1, MAX_LAYERS))
            evolving = fields.flag("evolving")
            stopping = _parse_stopping(fields["stopping"])
            isa = fields["isa"]
        except Violation as violation:
            raise FormatError(str(violation)) from None
        n_networks = 2 if stopping is not None and stopping["has_best"] else 1
        if (
            len(document.networks) != n_networks
            or len(document.networks[0].layers) != len(rewired)
            or not isinstance(isa, str)
        ):
            raise FormatError("this checkpoint does not hold a training.")
        arrays = dict(document.arrays)
        history = history_from_arrays(arrays)
        evolution: State | None = {} if evolving else None
        for name in [name for name in arrays if evolving and name.startswith(EVOLUTION)]:
            evolution = {**(evolution or {}), name.removeprefix(EVOLUTION): arrays.pop(name)}
        if arrays:
            raise FormatError(f"this checkpoint holds unknown arrays: {sorted(arrays)[:3]}.")
        best = document.networks[1] if n_networks == 2 else None
        network = document.networks[0]
        snapshot = cls(epochs_done, network, history, rewired, evolution, stopping, best)
        return snapshot, identity, isa


def _parse_counts(values: list[Any]) -> list[int]:
    require(
        all(type(value) is int and 0 <= value <= EXACT_INTEGER for value in values),
        5,
        "config: content.rewired must hold counts",
    )
    return values


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
