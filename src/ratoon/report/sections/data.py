"""The samples: sizes, classes, source, decisions of the reader, names of the held-out samples."""

from __future__ import annotations

from typing import Any

from ratoon.report.context import CROSS_VALIDATED, HELD_OUT, ReportContext, sample_names
from ratoon.report.facts import data_facts, preparation_facts

MOST_NAMES = 2000


def build(context: ReportContext) -> dict[str, Any] | None:
    """Return facts about the samples of the page and about the training samples."""
    data, training = context.data, context.training
    if data is None:
        return None
    parts = []
    if training is not None:
        parts.append(("Training samples", data_facts(training)))
    heading = {HELD_OUT: "Held-out samples", CROSS_VALIDATED: "Training samples"}
    parts.append((heading.get(context.basis, "Samples"), data_facts(data)))
    prepared = preparation_facts(context.estimator)
    if prepared:
        parts.append(("Before the network", prepared))
    names: tuple[str, ...] = ()
    if context.basis == HELD_OUT:
        names = sample_names(data)
    return {
        "parts": parts,
        "held_out": names[:MOST_NAMES],
        "n_held_out": len(names),
        "has_names": data.sample_names is not None,
    }
