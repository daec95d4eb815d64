"""Samples on disk, brought to native code piece by piece.

A piece is some minibatches of rows, read, used and forgotten.  What comes out is what the same
rows in memory would give.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.samples.on_disk import DiskRows

if TYPE_CHECKING:
    from ratoon.kernels.network import EpochOutcome, NativeNetwork, Progress
    from ratoon.kernels.types import Step

Rows = NDArray[np.int64]


def pieces(order: Rows, at_once: int, batch: int = 1) -> Iterator[Rows]:
    """Cut an order of rows into pieces of whole minibatches, about ``at_once`` rows each.

    Examples
    --------
    >>> [piece.tolist() for piece in pieces(np.arange(7), 5, batch=2)]
    [[0, 1, 2, 3], [4, 5, 6]]
    """
    size = max(1, at_once // batch) * batch
    for first in range(0, order.size, size):
        yield order[first : first + size]


def read_piece(samples: DiskRows, rows: Rows, *aligned: Array | None) -> tuple[Any, ...]:
    """Read rows, and take the same of what goes with them: targets, weights, offset."""
    return np.asarray(samples[rows]), *(None if a is None else a[rows] for a in aligned)


def train_in_pieces(
    network: NativeNetwork,
    samples: DiskRows,
    targets: Array,
    order: Rows,
    batch: int,
    rule: Any,
    steps: list[Step],
    *,
    sample_weights: Array | None,
    offset: Array | None,
    first_step: int,
    progress: Progress | None,
    **how: Any,
) -> EpochOutcome:
    """Train on rows in this order, as `NativeNetwork.train` does with samples in memory."""
    from ratoon.kernels.network import EpochOutcome, as_samples

    total, done, heard = 0.0, 0, 0.0
    for rows in pieces(order, samples.rows_at_once, batch):
        x, goal, weights, known = read_piece(samples, rows, targets, sample_weights, offset)
        outcome = network.train(
            as_samples(x, network.dtype),
            goal,
            np.arange(rows.size, dtype=np.int64),
            batch,
            rule,
            steps[done : done - (-rows.size // batch)],
            sample_weights=weights,
            offset=known,
            first_step=first_step + done,
            progress=None if progress is None else _counted_from(done, progress),
            **how,
        )
        done += outcome.steps_done
        counted = rows.size if weights is None else float(weights.sum())
        heard += counted
        total += outcome.loss * counted
        if outcome.diverged:
            return EpochOutcome(outcome.loss, done, diverged=True)
    return EpochOutcome(total / heard if heard > 0 else 0.0, done, diverged=False)


def _counted_from(done: int, progress: Progress) -> Progress:
    def tell(steps: int) -> None:
        progress(done + steps)

    return tell
