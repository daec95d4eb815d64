"""Errors on purpose become one message and an exit code, not a traceback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec

import typer

from ratoon.cli.output import say_error
from ratoon.errors import InvalidInputError, RatoonError

WRONG, INTERRUPTED = 1, 130

P = ParamSpec("P")


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Return the command, ending as a program should when something is wrong."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt as end:
            say_error(f"interrupted. {end}".rstrip())
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            raise  # `ratoon predict ... | head`: typer ends quietly
        except FileNotFoundError as error:
            say_error(f"{error.filename}: no such file." if error.filename else str(error))
            raise typer.Exit(WRONG) from None
        except (RatoonError, OSError) as error:
            say_error(str(error))
            raise typer.Exit(WRONG) from None
        except MemoryError:
            say_error("there is not enough memory; `ratoon plan --help` tells how to foresee it.")
            raise typer.Exit(WRONG) from None

    return run


@contextmanager
def blaming_the_data() -> Iterator[None]:
    """Take scikit-learn's complaints about samples as errors on purpose, too."""
    try:
        yield
    except RatoonError:
        raise
    except ValueError as error:
        raise InvalidInputError(str(error)) from None
