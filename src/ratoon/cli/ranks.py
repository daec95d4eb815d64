"""`--distributed`: one training over several processes, of which the first one speaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    if communicator is None or communicator.size == 1:
        return
    advice = (
        "name a folder with --checkpoint to keep what was learned until then."
        if checkpoint is None
        else f"the same command with --resume goes on from {checkpoint}, on any number of ranks."
    )
    say(f"{communicator.size} ranks train together. If one dies, all end: {advice}")


def average_every_from(text: str) -> int | str | None:
    """Return how ranks train together: a number of steps, "auto", or None for gradients.

    Examples
    --------
    >>> average_every_from("16"), average_every_from("auto"), average_every_from("gradients")
    (16, 'auto', None)
    """
    if text == "gradients":
        return None
    if text != "auto" and not text.isdecimal():
        raise InvalidParameterError(
            f"--average-every takes a number of steps, gradients, or auto; got {text!r}."
        )
    return text if text == "auto" else int(text)


@contextmanager
def together(
    communicator: Any | None, average_every: str, *, tell: Callable[[str], None] | None = None
) -> Iterator[list[Any]]:
    """Yield the callbacks that train together with the other ranks.

    An error on one rank ends all of them: the others would wait for it for ever.
    """
    every: Any = average_every_from(average_every)
    if communicator is None:
        yield []
        return
    from ratoon.distributed import DataParallel

    try:
        yield [DataParallel(communicator, every, tell)]
    except BaseException as error:
        if communicator.size > 1:
            communicator.abort(f"{type(error).__name__}: {error}")
        raise
