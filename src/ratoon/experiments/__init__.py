"""Experiments: comparisons of methods and strategies on the same splits."""

from __future__ import annotations

from ratoon.experiments.split import split_rows as split_rows
