"""SIGTERM as a request to finish: raise where it is safe, and end with status 143."""

from __future__ import annotations

import signal
import threading
from types import FrameType

STATUS = 128 + signal.SIGTERM


class Termination:
    """Turns SIGTERM into ``SystemExit(143)``, but never in the middle of a write.

    Only where nobody else has claimed the signal, and only in the main thread, where Python runs
    its handlers; elsewhere this does nothing.
    """

    def __init__(self) -> None:
        self.requested = False
        self._shielded = 0
        self._installed = False

    def install(self) -> None:
        """Begin to listen."""
        self.requested = False
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._handle)
            self._installed = True

    def remove(self) -> None:
        """Let the signal do again what it did before."""
        if self._installed:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._installed = False

    def __enter__(self) -> None:
        """Put the signal off."""
        self._shielded += 1

    def __exit__(self, *_: object) -> None:
        """Answer a signal that came meanwhile."""
        self._shielded -= 1
        if self.requested and not self._shielded:
            raise SystemExit(STATUS)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.requested = True
        if not self._shielded:
            raise SystemExit(STATUS)
