"""All ranks begin where rank 0 stands, so that a checkpoint resumes on any number of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon.distributed.communicator import Communicator
from ratoon.distributed.exchange import parts_of, take_over
from ratoon.history import History
from ratoon.training import Callback, Training


class Follow(Callback):
    """Take over network, optimizer state and progress of rank 0 before the first step.

    Put it after a `ratoon.storage.Checkpoint`, which only rank 0 has: that one brings rank 0 to
    where the newest checkpoint is, and this brings the others there.
    """

    def __init__(self, communicator: Communicator) -> None:
        self.communicator = communicator

    def on_fit_begin(self, training: Training) -> None:
        """Tell, or listen."""
        first = self.communicator.rank == 0
        told = self.communicator.from_first(_state_of(training) if first else None)
        if first:
            return
        for layer, parts in zip(training.network.layers, told["layers"], strict=True):
            take_over(layer, parts)
        training.epochs_done = told["epochs_done"]
        training.evolution_state = told["evolution_state"]
        training.history.records[:] = History.from_rows(told["history"]).records


def _state_of(training: Training) -> dict[str, Any]:
    return {
        "layers": [parts_of(layer) for layer in training.network.layers],
        "epochs_done": training.epochs_done,
        "evolution_state": {
            name: np.array(values) for name, values in (training.evolution_state or {}).items()
        }
        if training.evolution_state is not None
        else None,
        "history": training.history.to_rows(),
    }
