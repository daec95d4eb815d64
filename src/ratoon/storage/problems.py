"""What can go wrong with files, beside `ratoon.errors.FormatError`."""

from __future__ import annotations

from ratoon.errors import RatoonError


class SaveError(RatoonError, OSError):
    """A file could not be written; the file that was there before is still there, whole."""


class LockedError(RatoonError, OSError):
    """Another process is using a checkpoint directory."""


class ResumeError(RatoonError, ValueError):
    """A checkpoint belongs to another training; the message lists the differences."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be read or written, or continues on another processor."""
