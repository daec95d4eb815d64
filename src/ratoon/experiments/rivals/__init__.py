"""The two-phase methods of the paper: they select features, then classify."""

from __future__ import annotations

from ratoon.experiments.rivals.incremental_wrapper import IncrementalWrapper as IncrementalWrapper
from ratoon.experiments.rivals.proximal_svm import ProximalSVM as ProximalSVM
