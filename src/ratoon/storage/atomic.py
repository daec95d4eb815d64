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
import shutil
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


def write_file(path: PathLike, data: bytes) -> None:
    """Write a file as a whole or not at all; a device or pipe is written to directly.

    Raises
    ------
    SaveError
        If the file cannot be written, with the system's ``errno``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(os.path.join(folder, "note"), b"hello")
    ...     os.listdir(folder)
    ['note']
    """
    if not _is_stream(path):
        replace_file(path, lambda descriptor: write_all(descriptor, data))
        return
    try:
        with open(path, "wb") as stream:
            stream.write(data)
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise SaveError(error.errno, f"not written: {reason}", shown(path)) from error


def check_target(path: PathLike, n_bytes: int = 0, *, stream: bool = False) -> None:
    """Raise if a file could not be written, so that this is known before a long computation.

    Parameters
    ----------
    path : path
        The file that will be written.
    n_bytes : int, default=0
        Estimated size of the file.
    stream : bool, default=False
        Whether a device or pipe is accepted.

    Raises
    ------
    SaveError
        If the folder does not exist or cannot be written to, the name is that of a folder, or the
        disk has less free space.

    Examples
    --------
    >>> check_target("no/such/folder/model.ratoon")
    Traceback (most recent call last):
    ...
    ratoon.storage.atomic.SaveError: [Errno 2] there is no folder no/such/folder; ...
    """
    if "\0" in os.fsdecode(path):
        raise SaveError(errno.EINVAL, "a file name cannot have a null character", shown(path))
    if stream and _is_stream(path):
        return
    folder = os.path.dirname(os.path.realpath(os.fsdecode(path)))
    if not os.path.isdir(folder):
        given = os.path.dirname(os.fsdecode(path)) or folder
        raise SaveError(
            errno.ENOENT, f"there is no folder {shown(given)}; create it first", shown(path)
        )
    target = _final_target(path)
    check_folder(folder, n_bytes, named=path)
    if len(os.fsencode(os.path.basename(target))) > _longest_name(folder):
        raise SaveError(errno.ENAMETOOLONG, "the file name is too long", shown(path))


def check_folder(
    folder: PathLike,
    n_bytes: int = 0,
    *,
    named: PathLike | None = None,
    what: str = "the file will have",
) -> None:
    """Raise `SaveError` unless new files of this size in sum can be made in a folder."""
    name = folder if named is None else named
    # Permissions do not show read-only mounts, quotas and network file systems: make a file.
    temporary = os.path.join(os.fsdecode(folder), f".ratoon-{secrets.token_hex(8)}.tmp")
    try:
        os.close(os.open(temporary, _FLAGS, 0o600))
        os.unlink(temporary)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise SaveError(
            error.errno, f"the folder cannot be written to: {reason}; use another", shown(name)
        ) from None
    if n_bytes > free:
        raise SaveError(
            errno.ENOSPC,
            f"{what} about {n_bytes / 1e6:,.1f} MB, and {free / 1e6:,.1f} MB are free"
            f" on this disk; make room or use another folder",
            shown(name),
        )


def _longest_name(folder: str) -> int:
    try:
        return os.pathconf(folder, "PC_NAME_MAX")
    except (AttributeError, OSError, ValueError):  # Windows, and systems that do not know
        return 255


def _is_stream(path: PathLike) -> bool:
    """Whether a path is a device, pipe or socket, which cannot be replaced."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


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
