"""A network in closed form, as one of those that the default for many samples averages.

Trained networks miss features that matter only in products.  A committee finds them by pair
strength with a few thousand rows, in a few seconds.  ``research/2026-11-default.md`` has figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ratoon.arrays import Array
from ratoon.committee import suits
from ratoon.committee.members import MAX_TARGETS_FOR_SELECTION
from ratoon.errors import InvalidInputError
from ratoon.estimators.closed_form import solve_interactions
from ratoon.estimators.data import Labelled
from ratoon.estimators.presets import Shape
from ratoon.estimators.settings import CLOSED_FORM_LOSSES
from ratoon.kernels import Scaling
from ratoon.network import SparseMLP
from ratoon.rng import derive_generator
from ratoon.samples.base import Rows

if TYPE_CHECKING:
    from ratoon.estimators.base import BaseSparseMLP

NAME = "closed form"
"""Name of its share."""

MOST_ROWS = 2_500
"""It is solved for with at most so many rows: time grows with their third power."""


@dataclass(frozen=True, eq=False)
class Solved:
    """A network, how many rows it was solved for with, and outputs for rows it did not see."""

    network: SparseMLP
    n_rows: int
    held: Rows
    outputs: Array


def suits_part(shape: Shape, loss: str) -> bool:
    """Return whether a part of the rows can be solved for: dense ones, of many features.

    Examples
    --------
    >>> suits_part(Shape(6_000, 500, 2), "softmax_cross_entropy")
    True
    >>> suits_part(Shape(6_000, 20, 2), "softmax_cross_entropy")
    False
    """
    return (
        shape.n_samples > MOST_ROWS
        and shape.n_stored is None
        and suits(MOST_ROWS, shape.n_features)
        and loss in CLOSED_FORM_LOSSES
        and (shape.is_classifier or shape.n_outputs <= MAX_TARGETS_FOR_SELECTION)
    )


def solve_part(
    estimator: BaseSparseMLP,
    labelled: Labelled,
    parts: Sequence[Rows],
    scaling: Scaling,
    seed: int,
) -> Solved | None:
    """Solve for a network with a part of the rows; return None if there is no solution.

    Of the parts that trained networks hold back, it sees none while enough other rows are left, and
    never the first one.
    """
    generator = derive_generator(seed, "solved part")
    n_held = np.cumsum([part.size for part in parts])
    n_parts = max(1, int(np.sum(labelled.n_samples - n_held >= MOST_ROWS)))
    held = np.concatenate(parts[:n_parts])
    rows = np.setdiff1d(np.arange(labelled.n_samples), held)
    if rows.size > MOST_ROWS:
        rows = np.sort(generator.choice(rows, MOST_ROWS, replace=False))
    part = labelled.take(rows)
    try:
        committee = solve_interactions(
            part.x,
            estimator._encode(part.y, 0.0, "y"),
            estimator._weigh(part),
            estimator._strata(part.y),
            estimator._loss(),
            seed,
            None if part.groups is None else part.groups.codes,
            scaling,
        )
    except InvalidInputError:
        return None
    network = SparseMLP(committee.network.layers, scaling.of_type(np.float32))
    outputs = network.outputs(labelled.x[held]).astype(np.float64)
    return Solved(network, rows.size, held, outputs) if np.isfinite(outputs).all() else None
