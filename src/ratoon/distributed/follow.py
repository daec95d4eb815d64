"""All ranks begin where rank 0 stands, so that a checkpoint resumes on any number of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon.distributed.communicator import Communicator
from ratoon.distributed.exchange import share_layer
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
        for layer in training.network.layers:
            share_layer(self.communicator, layer)
        told = self.communicator.from_first(_progress_of(training))
        if self.communicator.rank != 0:
            training.epochs_done = told["epochs_done"]
            training.evolution_state = told["evolution_state"]
            training.history.records[:] = History.from_rows(told["history"]).records


def _progress_of(training: Training) -> dict[str, Any]:
    state = training.evolution_state
    return {
        "epochs_done": training.epochs_done,
        "evolution_state": state and {name: np.array(values) for name, values in state.items()},
        "history": training.history.to_rows(),
    }
