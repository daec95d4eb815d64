"""Replace a file as a whole or not at all.

The new content is written to a temporary file in the same directory and flushed to the disk before
it is renamed.  After a full disk, a kill or a power cut, the name refers to one complete file: the
old or the new.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable
from contextlib import suppress

from ratoon.errors import RatoonError

if sys.platform == "darwin":
    import fcntl

PathLike = str | os.PathLike[str]
TEMPORARY = re.compile(r"\.ratoon-[0-9a-f]{16}\.tmp")
"""Names of unfinished files; one that a killed process left can be removed."""
_FLAGS = (
    os.O_CREAT
    | os.O_EXCL
    | os.O_RDWR
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


class SaveError(RatoonError, OSError):
    """A file could not be written; a file that existed before still exists, unchanged."""


def shown(path: PathLike) -> str:
    r"""Return a path as text that can be printed, for any bytes in its name.

    Examples
    --------
    >>> shown("model\udce9.ratoon")
    'model\\udce9.ratoon'
    """
    return os.fsdecode(path).encode("utf-8", "backslashreplace").decode("utf-8")


def replace_file(
    path: PathLike,
    fill: Callable[[int], None],
    *,
    check: Callable[[str], None] | None = None,
) -> None:
    """Write a new file by ``fill(descriptor)``, then rename it to ``path``.

    Parameters
    ----------
    path : path
        The file to replace; a symbolic link is followed, and continues to point to the file.
    fill : callable
        Writes the content to the open descriptor it is given.
    check : callable, optional
        Called with the temporary name once the content is on disk; if it raises, the old file is
        kept.

    Raises
    ------
    SaveError
        If the file cannot be written, with the system's ``errno``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = os.path.join(folder, "note")
    ...     replace_file(name, lambda descriptor: write_all(descriptor, b"hello"))
    ...     os.path.getsize(name), os.listdir(folder)
    (5, ['note'])
    """
    target = _final_target(path)
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".ratoon-{secrets.token_hex(8)}.tmp")
    done = False
    try:
        _write_temporary(temporary, target, fill)
        if check is not None:
            check(temporary)
        os.replace(temporary, target)
        done = True
        sync_folder(folder)
    except BaseException as error:
        left = not done and not _removed(temporary)
        if not isinstance(error, OSError) or isinstance(error, SaveError):
            raise
        raise _explained(error, path, done=done, left=left) from error


def write_all(descriptor: int, data: bytes | bytearray | memoryview) -> None:
    """Write every byte, in as many calls as it takes."""
    with memoryview(data) as view:
        done = 0
        while done < view.nbytes:
            done += os.write(descriptor, view[done:])


def sync_folder(folder: str) -> None:
    """Flush a directory's entries to the disk, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system without such a flush
            raise
    finally:
        os.close(descriptor)


def _write_temporary(temporary: str, target: str, fill: Callable[[int], None]) -> None:
    descriptor = os.open(temporary, _FLAGS, 0o666)
    try:
        _keep_permissions(descriptor, target)
        fill(descriptor)
        _sync(descriptor)
    finally:
        os.close(descriptor)


def _sync(descriptor: int) -> None:
    if sys.platform == "darwin":
        # On macOS, fsync leaves the data in the drive's cache.
        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def _keep_permissions(descriptor: int, target: str) -> None:
    """Copy the permissions of the old file: a private model stays private when saved again."""
    if hasattr(os, "fchmod"):
        with suppress(FileNotFoundError):
            os.fchmod(descriptor, stat.S_IMODE(os.stat(target).st_mode))


def _final_target(path: PathLike) -> str:
    target = os.path.realpath(os.fsdecode(path))
    try:
        mode = os.lstat(target).st_mode
    except FileNotFoundError:
        return target
    except OSError as error:
        raise _explained(error, path, done=False, left=False) from None
    if stat.S_ISREG(mode):
        return target
    code, what = errno.EINVAL, "it exists and is not a regular file"
    if stat.S_ISDIR(mode):
        code, what = errno.EISDIR, "it is a directory"
    elif stat.S_ISLNK(mode):
        code, what = errno.ELOOP, "its symbolic links form a cycle"
    raise SaveError(code, f"not saved: {what}", shown(path))


def _removed(temporary: str) -> bool:
    try:
        os.unlink(temporary)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _explained(error: OSError, path: PathLike, *, done: bool, left: bool) -> SaveError:
    reason = os.strerror(error.errno) if error.errno else str(error)
    if done:
        message = f"saved, but {reason}: it might not survive a power cut"
    else:
        message = f"not saved: {reason}. A file that existed before is unchanged"
        if left:
            message += "; an unfinished one named .ratoon-*.tmp could not be removed"
    return SaveError(error.errno, message, shown(path))
