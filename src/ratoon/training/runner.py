"""StepRunner: takes the steps of a training instead of the native minibatch loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from ratoon.evolution import Clock

if TYPE_CHECKING:
    from ratoon.training.loop import Training


class StepRunner(Protocol):
    """Takes the steps of a training, for instance together with other processes.

    `Training` is given one as ``runner``, or gets it from a callback's `Callback.step_runner`.
    """

    def train(
        self,
        training: Training,
        order: NDArray[np.int64],
        batch: int,
        clock: Clock,
        stop: int,
    ) -> float:
        """Take the steps from the clock's to ``stop`` on samples of ``order``; return the loss."""
        ...

    def agree(self, training: Training) -> None:
        """Make sure that all ranks have the same topology after a rewiring."""
        ...

    def end_epoch(self, training: Training, last: int) -> None:
        """Agree with the other ranks whether to stop; called before the first epoch and after each.

        Training otherwise ends after epoch ``last``.
        """
        ...

    def fail(self, error: BaseException) -> None:
        """Report an error on this rank to the other ranks; it is raised again afterwards."""
        ...

    def finish(self) -> None:
        """Run at the end of a training, after the callbacks, also when it failed."""
        ...


_in_block: ContextVar[StepRunner | None] = ContextVar("ratoon_runner_in_block", default=None)


@contextmanager
def run_in_block(runner: StepRunner) -> Iterator[None]:
    """Use ``runner`` for every training in the block that has none.

    It exists for `ratoon.distributed.train_together`, which is deprecated, until that is removed.
    """
    token = _in_block.set(runner)
    try:
        yield
    finally:
        _in_block.reset(token)


def runner_of_block() -> StepRunner | None:
    """Return the runner that `run_in_block` has set."""
    return _in_block.get()
