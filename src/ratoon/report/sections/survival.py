"""Kaplan-Meier curves of samples by predicted risk."""

from __future__ import annotations

from typing import Any

import numpy as np

from ratoon.report.context import HELD_OUT, NEW, TRAINING, ReportContext
from ratoon.report.survival import survival_section
from ratoon.report.svg import Html

_BASIS = {
    HELD_OUT: "These samples were held out: they were not used for training.",
    TRAINING: "These samples were used for training, so the curves and the concordance do not"
    " describe new samples. Hold out samples with `ratoon train --test 0.3`.",
    NEW: "None of these samples was used for training.",
}
_LEFT_OUT = (
    "The risk of every sample is that of models that were trained without it. The model chose its"
    " parameters on these risks, so the concordance is slightly too good."
)
_UNKNOWN = (
    "The curves and the concordance describe new samples only if none of these was used for"
    " training, which is not known."
)


def build(context: ReportContext) -> dict[str, Any] | None:
    """Return the curves, the risk groups and the concordance; None for other models.

    They are those of ``context.extras["survival"]``, risks of the samples by models trained without
    them, if it is given; otherwise of the samples that the model was not trained on, if there are
    any.
    """
    data, risks = context.data, context.extras.get("survival")
    if data is None or not data.is_survival:
        return None
    basis = _BASIS.get(context.basis, _UNKNOWN) if risks is None else _LEFT_OUT
    seen = context.trained_on
    if risks is None and context.basis == NEW and seen is not None and seen.any():
        basis = (
            f"{seen.sum():,} of {seen.size:,} samples were used for training; shown are the others."
        )
        risks = np.where(seen, np.nan, context.estimator.predict(data))
    found = survival_section(context.estimator, data, risks)
    return None if found is None else {**found, "basis": basis, "picture": Html(found["picture"])}
