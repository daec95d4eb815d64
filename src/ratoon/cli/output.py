"""What goes to the screen: tables for people on a terminal, JSON for programs, errors to stderr."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

console = Console()
errors = Console(stderr=True)


def say_error(message: str) -> None:
    """Print an error the way all commands do."""
    errors.print(f"[bold red]ratoon:[/bold red] {_escaped(message)}", highlight=False)


def say(message: str) -> None:
    """Print a remark to stderr, so that stdout holds results only."""
    errors.print(_escaped(message), highlight=False)


def print_json(value: Any) -> None:
    """Print one JSON document to stdout."""
    print(json.dumps(value, indent=2, default=str))


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, note: str | None = None
) -> None:
    """Print a table: text to the left, numbers to the right."""
    table = Table(title=title, title_justify="left", title_style="bold", caption=note)
    for place, name in enumerate(columns):
        numeric = all(_looks_numeric(row[place]) for row in rows)
        table.add_column(name, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(_escaped(str(cell)) for cell in row))
    console.print(table)


def _looks_numeric(cell: Any) -> bool:
    text = str(cell).strip()
    return not text or text[0].isdigit() or text[0] in "-+.<" or text == "n/a"


def _escaped(text: str) -> str:
    return text.replace("[", r"\[")


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
