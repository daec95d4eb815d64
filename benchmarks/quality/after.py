"""What may come after a fit: a network for what the closed form leaves over, and snapshots."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from quality import networks
from quality.apart import Apart, answer, weigh
from quality.rivals import Answer
from quality.sets import Split
from ratoon import SparseMLPRegressor
from ratoon.history import EpochRecord
from ratoon.training import Callback, Training

Array = NDArray[Any]

N_NEURONS, N_EPOCHS, LAST = 1000, 30, 10

GUIDED = {
    "guided": "`GuidedSET` in the paper's model, last epoch",
    "guided last ten": "mean of its last ten epochs",
    "guided four": "mean of epochs 10, 20, 30, 40",
}


def with_residual(apart: Apart, seed: int) -> Answer:
    """Add a trained network, its first connections by the strength of what is left to explain.

    It learns what members that had not seen a row left over of that row, and its word is added to
    that of the committee.
    """
    judged, test, temperature = weigh(apart)
    left = apart.problem.targets - judged
    model = SparseMLPRegressor(
        (N_NEURONS,),
        epsilon=5,
        start="f",
        evolution="static",
        output_init="zero",
        solver="adam",
        learning_rate_init=1e-3,
        learning_rate="cosine",
        max_iter=N_EPOCHS,
        batch_size=32,
        random_state=seed,
        n_jobs=1,
    )
    model.fit(apart.z, left)
    return answer(test + model.predict(apart.z_test), temperature)


class Snapshots(Callback):
    """Keeps the probabilities of the test rows after every epoch; training takes no notice."""

    def __init__(self, x: Array) -> None:
        self.x = x.astype(np.float32)
        self.chances: list[Array] = []

    def on_epoch_end(self, training: Training, record: EpochRecord) -> None:
        """Keep what the network says now."""
        del record
        outputs = training.network.outputs(self.x).astype(np.float64)
        self.chances.append(softmax(outputs, axis=1))


def guided_snapshots(parts: Split, seed: int, wanted: Collection[str]) -> dict[str, Answer]:
    """Return `GuidedSET` in the paper's model: its last epoch, and averages over epochs."""
    del wanted
    kept = Snapshots(parts.x_test)
    networks.guided_set(parts, seed, callbacks=[kept])
    n_epochs = len(kept.chances)
    chosen = {
        "guided": [n_epochs - 1],
        "guided last ten": range(n_epochs - LAST, n_epochs),
        "guided four": [round(n_epochs * share) - 1 for share in (0.25, 0.5, 0.75, 1.0)],
    }
    means = {name: np.mean([kept.chances[e] for e in epochs], 0) for name, epochs in chosen.items()}
    return {name: (chances.argmax(axis=1), chances) for name, chances in means.items()}
