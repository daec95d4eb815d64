"""Learning curves."""

from __future__ import annotations

from typing import Any

from ratoon.report.context import ReportContext
from ratoon.report.curves import LearningCurveDisplay
from ratoon.report.style import inline_svg


def build(context: ReportContext) -> dict[str, Any]:
    """Return the curves of loss and validation score, and how the network was fitted."""
    estimator = context.estimator
    history, pictures = estimator.history_, []
    if len(history) > 1:
        loss = history.column("loss")
        curve = inline_svg(
            LearningCurveDisplay({"training": [loss]}, ylabel="loss"),
            f"Training loss over {len(loss)} epochs, from {loss[0]:.3g} to {loss[-1]:.3g}.",
            salt="loss",
            size=(5.2, 3.1),
        )
        pictures.append((curve, "Training loss after every epoch."))
        scores = history.column("validation_score")
        if None not in scores:
            curve = inline_svg(
                LearningCurveDisplay({"validation": [scores]}, ylabel="score"),
                f"Validation score over the epochs, best {max(scores):.3g}.",
                salt="score",
                size=(5.2, 3.1),
            )
            pictures.append((curve, "Score on validation samples after every epoch."))
    return {
        "pictures": pictures,
        "is_closed_form": estimator.solver_ == "closed form",
        "how": estimator.report_.how,
    }
