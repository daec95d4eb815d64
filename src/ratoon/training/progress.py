"""Progress of training: a bar in a terminal or a notebook, lines of text elsewhere."""

from __future__ import annotations

import math
import sys
import time
from typing import Any, TextIO

from ratoon.history import EpochRecord
from ratoon.training.callbacks import Callback
from ratoon.training.loop import Training

_LEAST_BAR = 10
_SECONDS_BETWEEN_LINES = 5.0
_SECONDS_LATER = 60.0
"""Seconds between two lines in the first minute, and after it."""


class ProgressBar(Callback):
    """Show a progress bar with the epoch, the loss, the score and the connections.

    Epoch, loss, score and connections are shown to the right of the bar, in this order, as far as
    they fit into the terminal.  If stderr is a file or a pipe, a line of text is written every five
    seconds in the first minute, every minute after it, and at the end, unless ``file`` is given.

    Parameters
    ----------
    description : str
        Text to the left of the bar.
    **options
        Passed to ``tqdm.auto.tqdm``: ``file``, ``leave``, ``ncols``, ...

    Examples
    --------
    >>> import io
    >>> from ratoon import SparseMLPRegressor
    >>> bar = ProgressBar("demo", file=(screen := io.StringIO()), ncols=100)
    >>> _ = SparseMLPRegressor(max_iter=2, callbacks=bar).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> "100%" in screen.getvalue() and "connections=" in screen.getvalue()
    True
    """

    def __init__(self, description: str = "training", **options: Any) -> None:
        self.description = description
        self.options = options
        self._bar: Any = None
        self._first = 0

    def on_fit_begin(self, training: Training) -> None:
        """Open the bar."""
        from tqdm.auto import tqdm

        self._first = training.epochs_done
        if "file" not in self.options and not _can_show_bars(tqdm):
            self._bar = _Lines(
                self.description, self._first, training.plan.n_epochs, file=sys.stderr
            )
            return
        self._bar = tqdm(
            total=max(training.plan.n_epochs - self._first, 1),
            desc=self.description,
            unit="epoch",
            # No counts: they are fractions of epochs, whose decimals mean nothing to a reader.
            bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}{postfix}",
            **self.options,
        )

    def on_progress(self, training: Training, steps_done: int) -> None:
        """Advance within an epoch."""
        n_samples = training.data.n_samples
        n_steps = math.ceil(n_samples / training.plan.batch_for(n_samples))
        self._move_to(training.epochs_done - self._first + min(steps_done / n_steps, 1.0))

    def on_epoch_end(self, training: Training, record: EpochRecord) -> None:
        """Advance to the end of the epoch, and show its results."""
        if self._bar is None:
            return
        shown = {"epoch": training.epochs_done, "loss": f"{record.loss:.4g}"}
        if record.validation_score is not None:
            shown["score"] = f"{record.validation_score:.4g}"
        shown["connections"] = f"{record.n_connections:,}"
        self._bar.set_postfix(self._fitting(shown), refresh=False)
        self._move_to(training.epochs_done - self._first)

    def on_fit_end(self, training: Training) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def _fitting(self, values: dict[str, Any]) -> dict[str, Any]:
        """Leave out the last values if the terminal is too narrow for them and the bar."""
        width = getattr(self._bar, "ncols", None)  # None: not limited
        taken = len(f"{self.description}: 100%||") + len(" 00:00<00:00") + _LEAST_BAR
        shown: dict[str, Any] = {}
        for name, value in values.items():
            taken += len(f", {name}={value}")
            if width is not None and taken > width:
                break
            shown[name] = value
        return shown

    def _move_to(self, place: float) -> None:
        if self._bar is not None:
            self._bar.update(place - self._bar.n)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_bar": None}


def _can_show_bars(tqdm: type) -> bool:
    """Whether a bar can be redrawn: on a terminal, and in a notebook."""
    in_notebook = any(base.__name__ == "tqdm_notebook" for base in tqdm.__mro__)
    return in_notebook or sys.stderr.isatty()


class _Lines:
    """Write progress as lines of text; has the methods of a tqdm bar that `ProgressBar` uses."""

    ncols = None

    def __init__(self, description: str, first: int, total: int, file: TextIO) -> None:
        self.description = description
        self.first = first
        self.total = total
        self.file = file
        self.n = 0.0
        self._facts: dict[str, Any] = {}
        self._started = self._written = time.monotonic()
        self._is_new = False

    def set_postfix(self, facts: dict[str, Any], *, refresh: bool) -> None:
        del refresh
        self._facts = {name: value for name, value in facts.items() if name != "epoch"}

    def update(self, amount: float) -> None:
        self.n += amount
        self._is_new = self._is_new or amount > 0
        now = time.monotonic()
        is_early = now - self._started < _SECONDS_LATER
        if now - self._written >= (_SECONDS_BETWEEN_LINES if is_early else _SECONDS_LATER):
            self._write()

    def close(self) -> None:
        if self._is_new:
            self._write()

    def _write(self) -> None:
        done = round(self.first + self.n, 2)
        epochs = "epoch" if self.total == 1 else "epochs"
        facts = "".join(f", {name}={value}" for name, value in self._facts.items())
        seconds = time.monotonic() - self._started
        print(
            f"{self.description}: {done:g} of {self.total} {epochs}{facts} ({seconds:.1f} s)",
            file=self.file,
            flush=True,
        )
        self._written = time.monotonic()
        self._is_new = False
