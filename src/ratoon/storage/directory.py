"""A directory of checkpoints: the last two, numbered, under a lock.

The lock is held by one process at a time, and freed by the system when the process dies.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import warnings
import weakref
from contextlib import suppress
from typing import Self

from ratoon.errors import FormatError, InvalidParameterError, RatoonError
from ratoon.storage.atomic import TEMPORARY, PathLike, shown, sync_folder
from ratoon.storage.document import Document
from ratoon.storage.read import read_document
from ratoon.storage.write import write_document

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK_NAME = "lock"
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_BUSY = (errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN)
NAME = re.compile(r"checkpoint-([0-9]{8,12})\.ratoon")
KEPT = 2


class LockedError(RatoonError, OSError):
    """Another process is using a checkpoint directory, or the directory was replaced."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be read or written, or continues on another processor."""


class DirectoryLock:
    """Exclusive lock on a directory, held from `acquire` to `release`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mine, other = DirectoryLock(folder), DirectoryLock(folder)
    ...     mine.acquire()
    ...     try:
    ...         other.acquire()
    ...     except LockedError as error:
    ...         print(error.strerror)
    ...     mine.release()
    in use by this process; wait for it to end, or choose another directory
    """

    def __init__(self, folder: PathLike) -> None:
        self._folder = os.fspath(folder)
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor is not None

    def acquire(self) -> None:
        """Take the lock, or raise `LockedError` without waiting if another object has it."""
        if self.held:
            return
        self._open()
        try:
            self.check()
        except BaseException:
            self.release()
            raise
        # For the message of another process; the lock itself does not depend on this number.
        with suppress(OSError):
            assert self._descriptor is not None
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, str(os.getpid()).encode())

    def check(self) -> None:
        """Raise `LockedError` if the lock file is no longer the one that this object locked.

        The directory was deleted, and perhaps made anew by another process, which has then locked
        another file.  Nothing is raised if there is no directory: no process uses it then.
        """
        if self._descriptor is None:
            raise RuntimeError("lock the directory first.")
        mine = os.fstat(self._descriptor)
        try:
            present = os.lstat(os.path.join(self._folder, LOCK_NAME))
        except FileNotFoundError:
            if not os.path.isdir(self._folder):
                return
        else:
            if (present.st_dev, present.st_ino) == (mine.st_dev, mine.st_ino):
                return
        raise LockedError(
            errno.EBUSY,
            "the directory was deleted or replaced while this process was using it, and another"
            " process may use it now; nothing more is written. Choose another directory",
            shown(self._folder),
        )

    def _open(self) -> None:
        descriptor = os.open(os.path.join(self._folder, LOCK_NAME), _FLAGS, 0o666)
        try:
            _lock(descriptor)
        except OSError as error:
            holder = _read_holder(descriptor)
            os.close(descriptor)
            if error.errno not in _BUSY:
                raise
            raise LockedError(
                error.errno,
                f"in use by {holder}; wait for it to end, or choose another directory",
                shown(self._folder),
            ) from None
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        _HELD.add(self)

    def release(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            _HELD.discard(self)
            os.close(descriptor)

    def __del__(self) -> None:
        with suppress(Exception):
            self.release()


class CheckpointDirectory:
    """Numbered checkpoints, of which the last two are kept.

    Reading needs no lock.  Writing does: use the object as a context manager.

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
        """Create the directory if needed, lock it, and remove files that killed writers left.

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
        """Unlock the directory."""
        self._lock.release()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    # -------------------------------------------------------------------------------- content

    def numbers(self) -> list[int]:
        """Return the numbers of the existing checkpoints in ascending order."""
        try:
            names = os.listdir(self.path)
        except FileNotFoundError:
            return []
        found = [int(match.group(1)) for match in map(NAME.fullmatch, names) if match]
        # Other spellings of a number, such as 000000001, are not the names of checkpoints.
        return sorted(number for number in found if os.path.basename(self.path_of(number)) in names)

    def path_of(self, number: int) -> str:
        """Return the path of the checkpoint with this number."""
        return os.path.join(self.path, f"checkpoint-{number:08d}.ratoon")

    def save(self, number: int, document: Document) -> None:
        """Write a checkpoint, read it back, and then remove all but the one before it.

        Checkpoints with higher numbers are removed too: training has returned to an earlier epoch
        and will write them again.

        Raises
        ------
        LockedError
            If the directory was replaced since it was locked; nothing is written then.
        SaveError
            If the file cannot be written.
        """
        if not self._lock.held:
            raise RuntimeError("lock the directory before writing to it.")
        if document.kind != "checkpoint" or not 0 <= number < 10**12:
            raise InvalidParameterError(
                f"a checkpoint with a number of at most 12 digits is needed, got a {document.kind}"
                f" with number {number!r}."
            )
        self._lock.check()
        try:
            write_document(document, self.path_of(number))
        except OSError:
            self._lock.check()
            raise
        self._lock.check()
        earlier = [other for other in self.numbers() if other <= number]
        for other in self.numbers():
            if other not in earlier[-KEPT:]:
                with suppress(FileNotFoundError):
                    os.unlink(self.path_of(other))

    def latest(self, *, attempts: int = 10) -> tuple[int, Document] | None:
        """Return number and content of the newest intact checkpoint, or None.

        If the newest cannot be used, the one before it is returned, with a `CheckpointWarning`.

        Raises
        ------
        FormatError
            If there are checkpoints and none can be used.
        """
        problems: list[str] = []
        for number in reversed(self.numbers()):
            try:
                document = read_document(self.path_of(number), kind="checkpoint")
            except FileNotFoundError as error:
                if os.path.islink(self.path_of(number)):
                    problems.append(f"{error}: a link to a missing file")
                continue  # otherwise its writer has replaced it by a newer one
            except (FormatError, OSError) as error:
                problems.append(str(error))
                continue
            if problems:
                warnings.warn(
                    f"using the older {shown(self.path_of(number))}, because\n  "
                    + "\n  ".join(problems),
                    CheckpointWarning,
                    stacklevel=2,
                )
            return number, document
        if problems:
            raise FormatError(
                f"{shown(self.path)}: no checkpoint can be used:\n  " + "\n  ".join(problems)
            )
        # A writer has replaced all that were listed, so list them again.
        if not self.numbers():
            return None
        if attempts <= 1:
            raise FormatError(f"{shown(self.path)}: the listed checkpoints cannot be opened.")
        return self.latest(attempts=attempts - 1)


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        # Far behind the process number in the file, which stays readable.
        os.lseek(descriptor, 2**20, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _read_holder(descriptor: int) -> str:
    number = b""
    with suppress(OSError):
        os.lseek(descriptor, 0, os.SEEK_SET)
        number = os.read(descriptor, 20)
    if not number.isdigit():
        return "another process"
    if int(number) == os.getpid():
        return "this process"
    return f"process {int(number)}"


def _forget_in_child() -> None:
    """Close inherited descriptors: a child must not keep the lock when its parent is gone."""
    for lock in list(_HELD):
        lock.release()


def _make_durably(folder: str) -> None:
    """Create a directory and its parents so that they survive a power cut."""
    if not os.path.isdir(folder):
        above = os.path.dirname(folder)
        _make_durably(above)
        with suppress(FileExistsError):
            os.mkdir(folder)
        sync_folder(above)


_HELD: weakref.WeakSet[DirectoryLock] = weakref.WeakSet()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
