"""Deprecated: the lottery ticket experiment is in `ratoon.evolution.contrib.lottery`."""

from __future__ import annotations

from ratoon.deprecation import moved

__getattr__ = moved(
    __name__,
    {
        "LotteryRound": "ratoon.evolution.contrib.lottery:LotteryRound",
        "find_ticket": "ratoon.evolution:find_ticket",
        "with_other_weights": "ratoon.evolution.contrib.lottery:with_other_weights",
    },
)
