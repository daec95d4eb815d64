"""Output of the commands: results to stdout; notes, progress and errors to stderr.

Names in models and data files may contain control characters, which a terminal would execute.
Everything is printed by the functions of this module, which escape them.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import wraps
from typing import Any, ParamSpec, TextIO

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from ratoon.errors import InvalidInputError, RatoonError

FAILED, INTERRUPTED = 1, 130

console = Console()
errors = Console(stderr=True)

P = ParamSpec("P")


# ------------------------------------------------------------------------------------- escaping

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # the direction of writing
    "\u2028\u2029\ud800-\udfff]"  # line separators; halves of characters, which have no encoding
)
_LINE_ENDS = str.maketrans({"\n": "\\n", "\t": "\\t"})


def visible(text: str) -> str:
    r"""Return text with control characters as escape sequences that can be read.

    Line feeds and tabs are kept: messages have several lines.

    Examples
    --------
    >>> visible("gene\x1b[31m"), visible("Müller\u202e")
    ('gene\\x1b[31m', 'Müller\\u202e')
    """
    return _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)


def visible_name(name: Any) -> str:
    r"""Return a name as `visible` does, and on one line.

    Examples
    --------
    >>> visible_name("gene\n1")
    'gene\\n1'
    """
    return visible(str(name)).translate(_LINE_ENDS)


@contextmanager
def visible_warnings() -> Iterator[None]:
    """Escape the control characters of the warnings inside the block."""
    usual = warnings.formatwarning
    warnings.formatwarning = lambda *args, **kwargs: visible(usual(*args, **kwargs))
    try:
        yield
    finally:
        warnings.formatwarning = usual


# --------------------------------------------------------------------------------------- streams


@contextmanager
def terminal_streams() -> Iterator[None]:
    """Print characters that the encoding of stdout and stderr lacks as escape sequences.

    If one of them is closed (``>&-``), the null device takes its descriptor, which the next file to
    be opened would get otherwise.  Notes and errors are dropped if stderr is closed.
    """
    if sys.stdout is None or sys.stderr is None:
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(descriptor)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
    changed = []
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            changed.append((stream, stream.errors))
            stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        for stream, usual in changed:
            stream.reconfigure(errors=usual)


def require_stdout() -> TextIO:
    """Return stdout; raise if it is closed, because results would be lost."""
    if sys.stdout is None:
        raise InvalidInputError("stdout is closed, so the results have nowhere to go.")
    return sys.stdout


def flush_results() -> bool:
    """Write out what is left in the buffer of stdout; print an error and return False on failure.

    Without this, Python would notice the failure when it ends, and print an error of its own.
    """
    if sys.stdout is None:
        return True
    try:
        sys.stdout.flush()
    except OSError as error:
        if error.errno != errno.EPIPE:  # `ratoon predict ... | head` has all it wants
            print_error(f"stdout: {error.strerror or error}.")
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
        return False
    return True


# -------------------------------------------------------------------------------------- printing


class LineWriter:
    """Where notes and errors go instead of the terminal: JSON lines, or None."""

    written: Callable[..., None] | None = None


as_lines = LineWriter()


def print_error(message: str) -> None:
    """Print an error to stderr."""
    if as_lines.written is not None:
        as_lines.written("error", "error", message)
        return
    # Soft wrapping leaves long lines to the terminal, so that a path in a log stays on one line.
    text = Text.assemble(("ratoon:", "bold red"), " ", visible(message))
    errors.print(text, soft_wrap=True)


def print_note(message: str) -> None:
    """Print a note to stderr, so that stdout holds results only."""
    if as_lines.written is not None:
        as_lines.written("info", "note", message)
        return
    errors.print(Text(visible(message)), soft_wrap=True)


def print_text(text: str) -> None:
    """Print lines of text to stdout."""
    console.print(Text(visible(text)), soft_wrap=True)


def print_json(value: Any) -> None:
    """Print one JSON document to stdout."""
    # ASCII, with every other character as \uXXXX; JSON itself leaves only DEL as it is.
    text = json.dumps(value, indent=2, default=_as_json).replace("\x7f", "\\u007f")
    print(text, file=require_stdout())


def _as_json(value: Any) -> Any:
    """Return NumPy numbers and arrays as Python's, anything else as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, note: str | None = None
) -> None:
    """Print a table, with text on the left of a column and numbers on the right.

    A cell that is a tuple has one line per entry.
    """
    if title:  # printed apart: a title of the table itself would be wrapped at the table's width
        console.print(Text(visible_name(title), "bold"))
    table = Table(box=SIMPLE_HEAD, caption=note, caption_justify="left")
    for place, name in enumerate(columns):
        numeric = all(_looks_numeric(row[place]) for row in rows)
        table.add_column(Text(visible_name(name)), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(Text(_cell_text(cell)) for cell in row))
    console.print(table)


def _cell_text(cell: Any) -> str:
    return "\n".join(map(visible_name, cell)) if isinstance(cell, tuple) else visible_name(cell)


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


def signed_points(value: float) -> str:
    """Return a difference of fractions in percentage points, without a sign if it rounds to 0.

    Examples
    --------
    >>> signed_points(0.123), signed_points(-0.0004), signed_points(-0.02)
    ('+12.3', '0.0', '-2.0')
    """
    text = f"{100 * value:+.1f}"
    return "0.0" if float(text) == 0 else text


def p_text(p: float | None) -> str:
    """Return a p value with three decimals; ``-`` if there is none.

    Examples
    --------
    >>> p_text(0.0321), p_text(0.0004), p_text(None)
    ('0.032', '<0.001', '-')
    """
    if p is None or p != p:
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


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


def error_text(error: Exception) -> str:
    """Return the message of an error; that of the system is without its number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return str(error)


_resources: list[ExitStack] = []


def until_the_end(resource: AbstractContextManager[Any]) -> None:
    """Enter a context that is left when the running command has ended and printed its error."""
    _resources[-1].enter_context(resource)


class HelpfulGroup(TyperGroup):
    """Commands that show their help if none is given, with exit code 2 in every click."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments."""
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Return a command that ends expected errors with a message and an exit code."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with ExitStack() as resources:
            _resources.append(resources)
            try:
                run_command(*args, **kwargs)
            finally:
                _resources.pop()

    def run_command(*args: P.args, **kwargs: P.kwargs) -> None:
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
        except IsADirectoryError as error:
            print_error(f"{error.filename}: this is a folder, not a file.")
            raise typer.Exit(FAILED) from None
        except RecursionError:
            print_error("the input is nested too deeply.")
            raise typer.Exit(FAILED) from None
        except (RatoonError, OSError) as error:
            print_error(error_text(error))
            raise typer.Exit(FAILED) from None
        except MemoryError:
            print_error("not enough memory.\n  `ratoon plan` estimates the memory of a network.")
            raise typer.Exit(FAILED) from None

    return run
