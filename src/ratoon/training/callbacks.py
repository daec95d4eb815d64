"""Callbacks: code that runs while a network trains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ratoon.history import EpochRecord
from ratoon.topology import Rewiring

if TYPE_CHECKING:
    from ratoon.training.loop import Training
    from ratoon.training.runner import StepRunner


class Callback:
    """Base class of callbacks, which does nothing; override the methods you need.

    `on_rewire` is called only where ``needs_rewirings`` is true.  Training then takes the general
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
        """Run repeatedly within an epoch, at most fifty times a second."""

    def on_rewire(self, training: Training, rewirings: Sequence[Rewiring]) -> None:
        """Run after a rewiring, with the changes to every layer."""

    def on_epoch_end(self, training: Training, record: EpochRecord) -> None:
        """Run after an epoch; set ``training.should_stop`` to end training."""

    def on_fit_end(self, training: Training) -> None:
        """Run after the last epoch, also when training was interrupted or failed to begin.

        A callback whose own `on_fit_begin` failed is not called.
        """

    def step_runner(self) -> StepRunner | None:
        """Return what takes the steps, if not the native minibatch loop of this process."""
        return None
