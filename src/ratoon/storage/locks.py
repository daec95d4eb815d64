"""A lock on a directory, held by one process at a time and freed by the system when it dies."""

from __future__ import annotations

import errno
import os
import sys
import weakref
from contextlib import suppress

from ratoon.storage.paths import PathLike, shown
from ratoon.storage.problems import LockedError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

LOCK_NAME = "lock"
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_BUSY = (errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN)


class DirectoryLock:
    """Keeps others out of a directory from `acquire` to `release`.

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
        """Take the lock, or raise `LockedError` at once if another has it."""
        if self.held:
            return
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
        # For the message above; who holds the lock is known to the system, not to this number.
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())

    def release(self) -> None:
        """Give the lock back."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            _HELD.discard(self)
            os.close(descriptor)

    def __del__(self) -> None:
        with suppress(Exception):
            self.release()


def _lock(descriptor: int) -> None:
    if sys.platform == "win32":
        # Far behind the number in the file, which stays readable.
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


_HELD: weakref.WeakSet[DirectoryLock] = weakref.WeakSet()


def _forget_in_child() -> None:
    """Close inherited descriptors: a child must not keep the lock when its parent is gone."""
    for lock in list(_HELD):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
