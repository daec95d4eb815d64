"""A directory of checkpoints: the last two, numbered, under a lock."""

from __future__ import annotations

import os
import re
import warnings
from contextlib import suppress
from typing import Self

from ratoon.errors import FormatError, InvalidParameterError
from ratoon.storage.atomic import TEMPORARY, sync_folder
from ratoon.storage.document import Document
from ratoon.storage.locks import DirectoryLock
from ratoon.storage.paths import PathLike, shown
from ratoon.storage.problems import CheckpointWarning
from ratoon.storage.read import read_document
from ratoon.storage.write import write_document

NAME = re.compile(r"checkpoint-([0-9]{8,12})\.ratoon")
KEPT = 2


class CheckpointDirectory:
    """Writes numbered checkpoints, keeps the last two, and finds the newest that is whole.

    Reading needs no lock.  Writing does: use it as a context manager.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, CheckpointDirectory(folder) as checkpoints:
    ...     for number in (1, 2, 3):
    ...         checkpoints.save(number, Document({"epoch": number}, kind="checkpoint"))
    ...     checkpoints.numbers(), checkpoints.latest()[1].config
    ([2, 3], {'epoch': 3})
    """

    def __init__(self, path: PathLike) -> None:
        self.path = os.fspath(path)
        self._lock = DirectoryLock(self.path)

    # -------------------------------------------------------------------------------- locking

    def acquire(self) -> None:
        """Make the directory if it is not there, lock it, and clear what killed writers left.

        Raises
        ------
        LockedError
            If another process is using the directory.
        """
        _make_durably(os.path.abspath(self.path))
        self._lock.acquire()
        for name in os.listdir(self.path):
            if TEMPORARY.fullmatch(name):
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(self.path, name))

    def release(self) -> None:
        """Let others in."""
        self._lock.release()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    # -------------------------------------------------------------------------------- content

    def numbers(self) -> list[int]:
        """Return the numbers of the checkpoints there are, smallest first."""
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return []
        return sorted(int(found.group(1)) for found in map(NAME.fullmatch, names) if found)

    def path_of(self, number: int) -> str:
        """Return where a checkpoint is or would be."""
        return os.path.join(self.path, f"checkpoint-{number:08d}.ratoon")

    def save(self, number: int, document: Document) -> None:
        """Write a checkpoint, read it back, and only then remove all but the one before it.

        Checkpoints with higher numbers are removed too: they belong to a future that was given
        up when training went back to an earlier one.
        """
        if not self._lock.held:
            raise RuntimeError("the directory must be locked before it is written to.")
        if document.kind != "checkpoint" or not 0 <= number < 10**12:
            raise InvalidParameterError(
                f"a checkpoint with a number of at most 12 digits is needed, got a {document.kind}"
                f" with number {number!r}."
            )
        write_document(document, self.path_of(number))
        earlier = [other for other in self.numbers() if other <= number]
        for other in self.numbers():
            if other not in earlier[-KEPT:]:
                with suppress(FileNotFoundError):
                    os.unlink(self.path_of(other))

    def latest(self) -> tuple[int, Document] | None:
        """Return number and content of the newest checkpoint that is whole; None if none is there.

        Where the newest cannot be used, a `CheckpointWarning` says why and the one before it is
        taken.

        Raises
        ------
        FormatError
            If there are checkpoints and none can be used.
        """
        troubles: list[str] = []
        for number in reversed(self.numbers()):
            try:
                document = read_document(self.path_of(number), kind="checkpoint")
            except FileNotFoundError:
                continue  # its writer has made a newer one meanwhile
            except (FormatError, OSError) as error:
                troubles.append(str(error))
                continue
            if troubles:
                warnings.warn(
                    f"going back to {shown(self.path_of(number))}, because\n  "
                    + "\n  ".join(troubles),
                    CheckpointWarning,
                    stacklevel=2,
                )
            return number, document
        if troubles:
            raise FormatError(
                f"{shown(self.path)}: no checkpoint can be used:\n  " + "\n  ".join(troubles)
            )
        # All that were listed are gone: a writer at work replaced them, so look again.
        return self.latest() if self.numbers() else None


def _make_durably(folder: str) -> None:
    """Make a directory, and those above it, so that they are there after a power cut."""
    if not os.path.isdir(folder):
        above = os.path.dirname(folder)
        _make_durably(above)
        with suppress(FileExistsError):
            os.mkdir(folder)
        sync_folder(above)
