"""Times of training and prediction."""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon.history import duration
from ratoon.report.context import ReportContext


def build(context: ReportContext) -> dict[str, Any]:
    """Return pairs of label and time."""
    estimator = context.estimator
    history = estimator.history_
    train = np.array(history.column("train_seconds"), dtype=np.float64)
    rewire = np.array(history.column("rewire_seconds"), dtype=np.float64)
    facts = []
    if estimator.solver_ == "closed form":
        facts.append(("fit in closed form", duration(float(train[0]))))
    elif train.size:
        facts += [
            ("epochs", f"{train.size:,}"),
            ("median per epoch", duration(float(np.median(train + rewire)))),
            ("rewiring per epoch (mean)", duration(float(rewire.mean()))),
            ("training in total", duration(float(train.sum() + rewire.sum()))),
        ]
    if context.estimate is not None:
        facts.append(("cross-validation", duration(float(context.estimate.seconds))))
    if context.seconds is not None:
        facts.append(("prediction of these samples", duration(context.seconds)))
    return {"facts": facts}
