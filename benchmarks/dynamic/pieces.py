"""Trainings in pieces: stop at the end of an epoch when the time is up, and continue later."""

from __future__ import annotations

import hashlib
import math
import pickle
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from dynamic.cells import Cell

Found = dict[str, Any]


class OutOfTimeError(Exception):
    """The time is up; what was reached is in a file."""


@dataclass(frozen=True)
class Pieces:
    """Where an unfinished training is kept, and when to stop it.

    Parameters
    ----------
    folder : Path, optional
        One file per unfinished training; None never stops a training.
    ends : float
        When to stop, of `time.monotonic`.
    """

    folder: Path | None = None
    ends: float = math.inf

    def path_of(self, cell: Cell) -> Path:
        """Return the file of a training."""
        assert self.folder is not None
        name = hashlib.sha256(repr(sorted(cell.key().items())).encode()).hexdigest()[:16]
        return self.folder / f"{name}.pickle"

    def read(self, cell: Cell) -> Found | None:
        """Return what was reached; None if nothing was."""
        if self.folder is None or not self.path_of(cell).exists():
            return None
        found: Found = pickle.loads(self.path_of(cell).read_bytes())
        return found

    def forget(self, cell: Cell) -> None:
        """Remove the file of a training that has ended."""
        if self.folder is not None:
            self.path_of(cell).unlink(missing_ok=True)

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.folder is not None and time.monotonic() > self.ends

    def stop(self, cell: Cell, state: Found) -> NoReturn:
        """Keep what was reached, and raise `OutOfTimeError`."""
        path = self.path_of(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_bytes(pickle.dumps(state))
        partial.replace(path)
        raise OutOfTimeError
