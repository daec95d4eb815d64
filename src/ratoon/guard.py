"""One training at a time: objects that a thread changes refuse other threads.

What is in use is kept here and not in the objects, so copies, pickles and clones of an object in
use are free.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ratoon.errors import AlreadyTrainingError


@dataclass(eq=False)
class _Use:
    """One use of an object by a thread, which either changes it or reads it."""

    thread: int
    action: str
    changes: bool


_lock = threading.Lock()
_uses: dict[int, list[_Use]] = {}
"""The uses of an object, by its id: the call that uses an object keeps it alive."""


@contextmanager
def training(*objects: object, name: str, nested: bool = True) -> Iterator[None]:
    """Mark objects as being trained by this thread.

    Parameters
    ----------
    *objects : object
        What is changed.
    name : str
        What it is called in messages.
    nested : bool, default=True
        Whether this thread may already be training them.

    Raises
    ------
    AlreadyTrainingError
        If another thread is training or saving one of them, or this one is and ``nested`` is False.

    Examples
    --------
    >>> model = object()
    >>> with training(model, name="a model"), training(model, name="a model", nested=False):
    ...     pass
    Traceback (most recent call last):
    ...
    ratoon.errors.AlreadyTrainingError: already training: a model cannot be trained again before...
    """
    mine = _Use(threading.get_ident(), "training", changes=True)
    with _entered(objects, mine, name, nested=nested):
        yield


@contextmanager
def reading(one: object, *, name: str, action: str) -> Iterator[None]:
    """Mark an object as being read by this thread, so that no other thread trains it.

    The thread that trains it may read it.

    Parameters
    ----------
    one : object
        What is read.
    name : str
        What it is called in messages.
    action : str
        What is done with it, as a participle such as ``"saving"``.

    Raises
    ------
    AlreadyTrainingError
        If another thread is training it.
    """
    mine = _Use(threading.get_ident(), action, changes=False)
    with _entered((one,), mine, name, nested=True):
        yield


@contextmanager
def _entered(objects: tuple[object, ...], mine: _Use, name: str, *, nested: bool) -> Iterator[None]:
    try:  # from the first entry on, so that Ctrl-C leaves none behind
        with _lock:
            for one in objects:
                for other in _uses.get(id(one), ()):
                    _check(mine, other, name, nested=nested)
            for one in objects:
                _uses.setdefault(id(one), []).append(mine)
        yield
    finally:
        with _lock:
            for one in objects:
                left = [use for use in _uses.get(id(one), ()) if use is not mine]
                if left:
                    _uses[id(one)] = left
                else:
                    _uses.pop(id(one), None)


def _check(mine: _Use, other: _Use, name: str, *, nested: bool) -> None:
    """Raise if two uses of an object exclude each other."""
    if not (mine.changes or other.changes):
        return
    if mine.thread == other.thread:
        if mine.changes and other.changes and not nested:
            raise AlreadyTrainingError(
                f"already training: {name} cannot be trained again before the running call has"
                f" ended.\n  Do not train it in one of its own callbacks."
            )
        return
    if not other.changes:
        raise AlreadyTrainingError(
            f"another thread is {other.action} {name}; train it after that has finished."
        )
    if mine.changes:
        raise AlreadyTrainingError(
            f"already training: another thread is training {name}.\n"
            f"  Train a copy in each thread, or wait until that thread has finished."
        )
    raise AlreadyTrainingError(
        f"already training: another thread is training {name}, and {mine.action} it now would mix"
        f" two states.\n  Wait until that thread has finished."
    )


def _forget_after_fork() -> None:
    """Forget the other threads of the parent, which do not exist in a child."""
    global _lock
    _lock = threading.Lock()
    me = threading.get_ident()
    for key, uses in list(_uses.items()):
        if left := [use for use in uses if use.thread == me]:
            _uses[key] = left
        else:
            del _uses[key]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
