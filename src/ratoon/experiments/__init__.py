"""Experiments: comparisons of methods and strategies on the same splits."""

from __future__ import annotations

from ratoon.deprecation import moved
from ratoon.experiments.estimate import Estimate as Estimate
from ratoon.experiments.estimate import cross_validate as cross_validate
from ratoon.experiments.estimate import own_estimate as own_estimate
from ratoon.experiments.split import split_rows as split_rows

__getattr__ = moved(
    __name__, {name: f"ratoon.paper:{name}" for name in ("PaperSettings", "Trial", "run_trial")}
)
