"""Experiments: protocols that say honestly how well a network does."""

from __future__ import annotations

from ratoon.experiments.split import split_rows as split_rows
from ratoon.experiments.trial import PaperSettings as PaperSettings
from ratoon.experiments.trial import Trial as Trial
from ratoon.experiments.trial import run_trial as run_trial
