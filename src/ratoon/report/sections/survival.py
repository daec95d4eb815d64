"""Kaplan-Meier curves of samples by predicted risk."""

from __future__ import annotations

from typing import Any

from ratoon.report.context import ReportContext
from ratoon.report.survival import survival_section
from ratoon.report.svg import Html


def build(context: ReportContext) -> dict[str, Any] | None:
    """Return the curves, the risk groups and the concordance; None for other models."""
    found = survival_section(context.estimator, context.data)
    return None if found is None else {**found, "picture": Html(found["picture"])}
