"""Output of the commands: results to stdout; notes, progress and errors to stderr."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ratoon.errors import RatoonError

FAILED, INTERRUPTED = 1, 130

console = Console()
errors = Console(stderr=True)

P = ParamSpec("P")


# -------------------------------------------------------------------------------------- printing


def print_error(message: str) -> None:
    """Print an error to stderr."""
    # Soft wrapping leaves long lines to the terminal, so that a path in a log stays on one line.
    errors.print(f"[bold red]ratoon:[/bold red] {escape(message)}", highlight=False, soft_wrap=True)


def print_note(message: str) -> None:
    """Print a note to stderr, so that stdout holds results only."""
    errors.print(message, highlight=False, markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print one JSON document to stdout."""
    print(json.dumps(value, indent=2, default=_as_json))


def _as_json(value: Any) -> Any:
    """Return NumPy numbers and arrays as Python's, anything else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, note: str | None = None
) -> None:
    """Print a table, with text on the left of a column and numbers on the right."""
    if title:  # printed apart: a title of the table itself would be wrapped at the table's width
        console.print(f"[bold]{escape(title)}[/bold]", highlight=False)
    table = Table(box=SIMPLE_HEAD, caption=note, caption_justify="left")
    for place, name in enumerate(columns):
        numeric = all(_looks_numeric(row[place]) for row in rows)
        table.add_column(escape(name), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    console.print(table)


def _looks_numeric(cell: Any) -> bool:
    text = str(cell).strip()
    return not text or text[0].isdigit() or text[0] in "-+.<" or text == "n/a"


# ------------------------------------------------------------------------------- text of numbers


def count(number: int, singular: str, plural: str | None = None) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> count(1, "epoch"), count(1200, "epoch"), count(2, "class", "classes")
    ('1 epoch', '1,200 epochs', '2 classes')
    """
    noun = singular if number == 1 else plural or f"{singular}s"
    return f"{number:,} {noun}"


def megabytes(n_bytes: float) -> str:
    """Return a number of bytes as text.

    Examples
    --------
    >>> megabytes(38_400), megabytes(5_600_000), megabytes(2.5e9), megabytes(1.04e12)
    ('38.4 kB', '5.6 MB', '2.50 GB', '1.04 TB')
    """
    if n_bytes >= 1e12:
        return f"{n_bytes / 1e12:.2f} TB"
    if n_bytes >= 1e9:
        return f"{n_bytes / 1e9:.2f} GB"
    if n_bytes >= 1e6:
        return f"{n_bytes / 1e6:.1f} MB"
    return f"{n_bytes / 1e3:.1f} kB"


def density_text(requested: float | None) -> str:
    """Return the density requested for a layer; None if its topology was given.

    Examples
    --------
    >>> density_text(0.1), density_text(None)
    ('0.1', 'given')
    """
    return "given" if requested is None else f"{requested:.3g}"


# ------------------------------------------------------------------------------ operating system


def peak_memory() -> int | None:
    """Return the largest number of bytes this process has held, or None if it is not known."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def load_average() -> float | None:
    """Return the mean number of runnable processes over the last minute, or None."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


# ---------------------------------------------------------------------------------------- errors


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Return a command that ends expected errors with a message and an exit code."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt as end:
            print_error(f"interrupted. {end}".rstrip())
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            raise  # `ratoon predict ... | head`: typer ends without a message
        except FileNotFoundError as error:
            print_error(f"{error.filename}: no such file." if error.filename else str(error))
            raise typer.Exit(FAILED) from None
        except (RatoonError, OSError) as error:
            print_error(str(error))
            raise typer.Exit(FAILED) from None
        except MemoryError:
            print_error("not enough memory.\n  `ratoon plan` estimates the memory of a network.")
            raise typer.Exit(FAILED) from None

    return run
