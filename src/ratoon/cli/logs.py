"""Log lines of a command: notes on a terminal, plain lines in a file, or JSON for machines."""

from __future__ import annotations

import json
import logging
import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from ratoon.cli import terminal
from ratoon.cli.options import in_shell_words
from ratoon.cli.terminal import visible


@contextmanager
def logged(*, as_json: bool = False, quiet: bool = False) -> Iterator[None]:
    """Print what ``ratoon`` logs during the block.

    As text: checkpoints, resuming and signals; epochs are left to the progress bar.  As JSON: one
    object per line for these, every epoch, notes, warnings and errors.  Nothing if ``quiet``,
    unless as JSON.

    Parameters
    ----------
    as_json : bool, default=False
        Whether lines are JSON objects with ``time``, ``level``, ``event`` and ``message``.
    quiet : bool, default=False
        Whether to print nothing as text.
    """
    if quiet and not as_json:
        yield
        return
    logger = logging.getLogger("ratoon")
    handler: logging.Handler = _JsonLines() if as_json else _Notes()
    usual = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    earlier = terminal.as_lines.written
    if as_json:
        terminal.as_lines.written = write_line
    try:
        yield
    finally:
        terminal.as_lines.written = earlier
        logger.removeHandler(handler)
        logger.setLevel(usual[0])
        logger.propagate = usual[1]


@contextmanager
def epochs_not_logged() -> Iterator[None]:
    """Leave the epochs of the fits inside the block, such as those of folds, out of the log."""
    logger = logging.getLogger("ratoon.training")
    usual = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(usual)


class _Notes(logging.Handler):
    """Prints messages above the progress bar, if there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "event", "") == "epoch":
            return
        from tqdm import tqdm

        # `tqdm.write` moves a bar out of the way, and prints plainly where there is none.
        tqdm.write(visible(in_shell_words(record.getMessage())), file=sys.stderr)


class _JsonLines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        facts = getattr(record, "facts", {})
        event = getattr(record, "event", "note")
        write_line(record.levelname.lower(), event, record.getMessage(), **facts)


def write_line(level: str, event: str, message: str, **facts: Any) -> None:
    """Write one JSON object to stderr."""
    print(line_of(level, event, message, **facts), file=sys.stderr, flush=True)


def line_of(level: str, event: str, message: str, **facts: Any) -> str:
    """Return a line of the log as JSON; numbers that are not finite, which it lacks, are null."""
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    known = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in facts.items()
    }
    line = {"time": time, "level": level, "event": event, "message": message, **known}
    return json.dumps(line, default=str)


@contextmanager
def warnings_on_one_line() -> Iterator[None]:
    """Print every warning inside the block as one line, in the words of the shell."""
    usual = warnings.formatwarning

    def on_one_line(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> str:
        text = " ".join(in_shell_words(str(message)).split())
        if terminal.as_lines.written is None:
            return f"ratoon: warning: {visible(text)}\n"
        facts = {"category": category.__name__}
        return line_of("warning", "warning", text, **facts) + "\n"

    warnings.formatwarning = on_one_line
    try:
        yield
    finally:
        warnings.formatwarning = usual
