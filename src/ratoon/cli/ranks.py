"""`--distributed`: one training over several processes, of which the first one speaks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ratoon.cli.output import say
from ratoon.errors import InvalidParameterError

TRANSPORTS = ("mpi",)


def communicator_for(transport: str | None) -> Any | None:
    """Return the group this process belongs to, or None if it works alone."""
    if transport is None:
        return None
    if transport not in TRANSPORTS:
        raise InvalidParameterError(
            f"--distributed must be one of {TRANSPORTS}, got {transport!r}."
        )
    from ratoon.distributed import MPICommunicator

    return MPICommunicator()


def tell_what_if(communicator: Any | None, checkpoint: Path | None) -> None:
    """Say beforehand what happens when a rank is killed: afterwards nobody is left to say it."""
    if communicator is None or communicator.rank != 0 or communicator.size == 1:
        return
    advice = (
        "name a folder with --checkpoint to keep what was learned until then."
        if checkpoint is None
        else f"the same command with --resume goes on from {checkpoint}, on any number of ranks."
    )
    say(f"{communicator.size} ranks train together. If one dies, all end: {advice}")


@contextmanager
def together(communicator: Any | None, average_every: int | None) -> Iterator[list[Any]]:
    """Train together inside the block; yields the callbacks that this takes.

    An error on one rank ends all of them: the others would wait for it for ever.
    """
    if communicator is None:
        yield []
        return
    from ratoon.distributed import Follow, train_together

    try:
        with train_together(communicator, average_every=average_every):
            yield [Follow(communicator)]
    except BaseException as error:
        if communicator.size > 1:
            communicator.abort(f"{type(error).__name__}: {error}")
        raise
