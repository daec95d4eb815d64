"""Survival analysis with NumPy: Cox's partial likelihood, concordance, curves."""

from ratoon.survival.concordance import concordance_index, concordance_pairs, uno_weights
from ratoon.survival.cox import TIES, CoxLoss, baseline_hazard, martingale_residuals
from ratoon.survival.curves import KaplanMeier, StepFunction, kaplan_meier, log_rank

__all__ = [
    "TIES",
    "CoxLoss",
    "KaplanMeier",
    "StepFunction",
    "baseline_hazard",
    "concordance_index",
    "concordance_pairs",
    "kaplan_meier",
    "log_rank",
    "martingale_residuals",
    "uno_weights",
]
