"""`--distributed`: one training over several processes; rank 0 prints and writes files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from ratoon.cli.terminal import FAILED, print_note
from ratoon.errors import InvalidParameterError, RatoonError

TRANSPORTS = ("mpi",)


def communicator_for(transport: str | None) -> Any | None:
    """Return the communicator of this process, or None if it trains alone."""
    if transport is None:
        return None
    if transport not in TRANSPORTS:
        raise InvalidParameterError(
            f"--distributed must be {' or '.join(TRANSPORTS)}; got {transport!r}."
        )
    from ratoon.distributed import MPICommunicator

    return MPICommunicator()


def print_what_happens_on_failure(communicator: Any | None, checkpoint: Path | None) -> None:
    """Print before training what happens if a rank is killed: afterwards no rank could."""
    if communicator is None or communicator.size == 1:
        return
    advice = (
        "use --checkpoint FOLDER to keep what was learned so far."
        if checkpoint is None
        else f"the same command with --resume continues from {checkpoint}, on any number of ranks."
    )
    print_note(f"{communicator.size} ranks train together. If one is killed, all end: {advice}")


def average_every_from(text: str) -> int | str | None:
    """Return the steps between averages: a number, "auto", or None to sum gradients.

    Examples
    --------
    >>> average_every_from("16"), average_every_from("auto"), average_every_from("gradients")
    (16, 'auto', None)
    """
    if text == "gradients":
        return None
    if text != "auto" and not text.isdecimal():
        raise InvalidParameterError(
            f"--average-every must be a number of steps, gradients or auto; got {text!r}."
        )
    return text if text == "auto" else int(text)


@contextmanager
def distributed(
    communicator: Any | None, average_every: str, *, log: Callable[[str], None] | None = None
) -> Iterator[list[Any]]:
    """Yield the callbacks that train together with the other ranks.

    An error on one rank ends all of them.  Rank 0 prints it, and the others end without a message.
    """
    every: Any = average_every_from(average_every)
    if communicator is None:
        yield []
        return
    from ratoon.distributed import DataParallel, RankFailedError

    together = DataParallel(communicator, every, log)
    try:
        yield [together]
    except (RatoonError, OSError, MemoryError) as error:
        # Rank 0 has received the errors that ended the training.
        is_known = isinstance(error, RankFailedError) or together.reported is not None
        if is_known and communicator.rank != 0:
            raise typer.Exit(FAILED) from None
        raise
