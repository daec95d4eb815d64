"""Errors on purpose become one message and an exit code, not a traceback."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import typer

from ratoon.cli.output import say_error
from ratoon.errors import RatoonError

WRONG, INTERRUPTED = 1, 130

P = ParamSpec("P")


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Return the command, ending as a program should when something is wrong."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            say_error("interrupted.")
            raise typer.Exit(INTERRUPTED) from None
        except (RatoonError, OSError) as error:
            say_error(str(error))
            raise typer.Exit(WRONG) from None

    return run
