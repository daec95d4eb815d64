"""Callbacks: what others may do while a network trains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ratoon.history import EpochRecord
from ratoon.topology import Rewiring

if TYPE_CHECKING:
    from ratoon.training.loop import Training


class Callback:
    """Does nothing; override what you need.

    ``needs_rewirings`` asks for `on_rewire` to be called, which makes training take the general
    path instead of the in-place one: the same result, somewhat slower.

    Examples
    --------
    >>> class StopWhenGood(Callback):
    ...     def on_epoch_end(self, training, record):
    ...         training.should_stop = record.loss < 0.01
    """

    needs_rewirings = False

    def on_fit_begin(self, training: Training) -> None:
        """Run before the first epoch."""

    def on_progress(self, training: Training, steps_done: int) -> None:
        """Run now and then within an epoch, at most fifty times a second."""

    def on_rewire(self, training: Training, rewirings: Sequence[Rewiring]) -> None:
        """Run after a rewiring, with what it did to every layer."""

    def on_epoch_end(self, training: Training, record: EpochRecord) -> None:
        """Run after an epoch; set ``training.should_stop`` to end training."""

    def on_fit_end(self, training: Training) -> None:
        """Run after the last epoch, also when training was interrupted."""
