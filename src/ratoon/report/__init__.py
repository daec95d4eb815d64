"""Report: what a network did, as pictures and tables."""

from __future__ import annotations

from ratoon.report.confusion import ConfusionMatrixDisplay as ConfusionMatrixDisplay
from ratoon.report.curves import LearningCurveDisplay as LearningCurveDisplay
