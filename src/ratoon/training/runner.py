"""Who takes the steps: this process alone, or several together.

`Training` asks for a runner before it takes steps itself.  One is set for the length of a block by
`run_by`; that is how `ratoon.distributed` trains anything that trains, estimators included.
"""

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
    """Takes steps in the place of the native minibatch loop."""

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
        """Make sure that all have the same topology after a rewiring."""
        ...


_runner: ContextVar[StepRunner | None] = ContextVar("ratoon_step_runner", default=None)


def current_runner() -> StepRunner | None:
    """Return who takes steps now, if not this process alone."""
    return _runner.get()


@contextmanager
def run_by(runner: StepRunner) -> Iterator[None]:
    """Let every training inside the block take its steps by ``runner``."""
    token = _runner.set(runner)
    try:
        yield
    finally:
        _runner.reset(token)
