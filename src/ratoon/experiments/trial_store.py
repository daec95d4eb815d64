"""Moved to `ratoon.paper`."""

from __future__ import annotations

from ratoon.deprecation import moved

__getattr__ = moved(
    __name__, {"TrialResult": "ratoon.paper:TrialResult", "TrialStore": "ratoon.paper:TrialStore"}
)
