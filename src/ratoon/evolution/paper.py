"""Deprecated: the SET paper's two implementations are in `ratoon.evolution.contrib.paper`."""

from __future__ import annotations

from ratoon.deprecation import moved

__getattr__ = moved(
    __name__,
    {
        "rewire_one_by_one": "ratoon.evolution.contrib.paper:rewire_one_by_one",
        "rewire_vectorised": "ratoon.evolution.contrib.paper:rewire_vectorised",
    },
)
