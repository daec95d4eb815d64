"""What goes to the screen: tables for people on a terminal, JSON for programs, errors to stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ratoon.errors import InvalidInputError, RatoonError

console = Console()

errors = Console(stderr=True)


def say_error(message: str) -> None:
    """Print an error the way all commands do."""
    # Soft wrapping leaves long lines to the terminal: in a log a path must stay in one piece.
    errors.print(f"[bold red]ratoon:[/bold red] {escape(message)}", highlight=False, soft_wrap=True)


def say(message: str) -> None:
    """Print a remark to stderr, so that stdout holds results only."""
    errors.print(message, highlight=False, markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print one JSON document to stdout."""
    print(json.dumps(value, indent=2, default=_plain))


def _plain(value: Any) -> Any:
    """Return NumPy's numbers and arrays as Python's, anything else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, note: str | None = None
) -> None:
    """Print a table: text to the left, numbers to the right."""
    if title:  # not the table's own title, which would be broken at the table's width
        console.print(f"[bold]{escape(title)}[/bold]", highlight=False)
    table = Table(caption=note)
    for place, name in enumerate(columns):
        numeric = all(_looks_numeric(row[place]) for row in rows)
        table.add_column(escape(name), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    console.print(table)


def _looks_numeric(cell: Any) -> bool:
    text = str(cell).strip()
    return not text or text[0].isdigit() or text[0] in "-+.<" or text == "n/a"


def megabytes(n_bytes: float) -> str:
    """Return bytes as text a person reads.

    Examples
    --------
    >>> megabytes(5_600_000), megabytes(2.5e9)
    ('5.6 MB', '2.50 GB')
    """
    if n_bytes >= 1e9:
        return f"{n_bytes / 1e9:.2f} GB"
    return f"{n_bytes / 1e6:.1f} MB"


def density_text(requested: float | None) -> str:
    """Return the density a layer was asked to have; none was where its topology was given.

    Examples
    --------
    >>> density_text(0.1), density_text(None)
    ('0.1', 'given')
    """
    return "given" if requested is None else f"{requested:.3g}"


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


def peak_memory() -> int | None:
    """Return the most bytes this process has held, or None where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def load_average() -> float | None:
    """Return how many processes wanted a core over the last minute, or None."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None
