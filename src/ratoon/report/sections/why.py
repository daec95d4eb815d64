"""Contributions of features to single predictions; left out unless data are given."""

from __future__ import annotations

from typing import Any

from ratoon.report.context import ReportContext


def build(context: ReportContext) -> Any:
    """Return ``context.extras["why"]``."""
    return context.extras.get("why")
