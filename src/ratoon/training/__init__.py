"""Training: the epoch loop, its state, its plan and its callbacks."""

from __future__ import annotations

from ratoon.training.callbacks import Callback as Callback
from ratoon.training.cox import CoxRunner as CoxRunner
from ratoon.training.loop import Training as Training
from ratoon.training.loop import TrainingData as TrainingData
from ratoon.training.plan import TrainingPlan as TrainingPlan
from ratoon.training.progress import ProgressBar as ProgressBar
from ratoon.training.runner import StepRunner as StepRunner
from ratoon.training.state import TrainingState as TrainingState
from ratoon.training.stopping import EarlyStopping as EarlyStopping
from ratoon.training.trackers import LogMetrics as LogMetrics
from ratoon.training.trackers import TrackerWarning as TrackerWarning
