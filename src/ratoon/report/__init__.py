"""Report: pictures and tables of a fitted network, and the HTML report."""

from __future__ import annotations

from ratoon.report.confusion import ConfusionMatrixDisplay as ConfusionMatrixDisplay
from ratoon.report.connectivity import ConnectivityAnimation as ConnectivityAnimation
from ratoon.report.connectivity import ConnectivityDisplay as ConnectivityDisplay
from ratoon.report.contributions import ContributionDisplay as ContributionDisplay
from ratoon.report.curves import LearningCurveDisplay as LearningCurveDisplay
from ratoon.report.layers import ConnectionCountDisplay as ConnectionCountDisplay
from ratoon.report.layers import DegreeDisplay as DegreeDisplay
from ratoon.report.page import render_report as render_report
from ratoon.report.page import write_report as write_report
from ratoon.report.ranking import FeatureRankingDisplay as FeatureRankingDisplay
from ratoon.report.strategies import StrategyDisplay as StrategyDisplay
from ratoon.report.survival import KaplanMeierDisplay as KaplanMeierDisplay
