"""Reproduce the paper: run its trials and compute its tables and figures."""

from __future__ import annotations

from ratoon.paper.reproduce import TABLES as TABLES
from ratoon.paper.reproduce import reproduce as reproduce
from ratoon.paper.runs import Effort as Effort
from ratoon.paper.sets import PAPER_SETS as PAPER_SETS
from ratoon.paper.trial import PaperSettings as PaperSettings
from ratoon.paper.trial import Trial as Trial
from ratoon.paper.trial import TrialResult as TrialResult
from ratoon.paper.trial import TrialStore as TrialStore
from ratoon.paper.trial import run_trial as run_trial
