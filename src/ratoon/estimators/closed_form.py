"""Fit in closed form: solve for a committee of networks instead of training step by step.

`ratoon.committee` describes the method.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from ratoon.arrays import Array
from ratoon.committee import Committee, Problem, fit_committee
from ratoon.committee.survival import fit_survival_committee
from ratoon.errors import InvalidInputError
from ratoon.history import EpochRecord
from ratoon.kernels import Scaling
from ratoon.losses import mean_loss
from ratoon.samples.base import Samples
from ratoon.survival import martingale_residuals
from ratoon.training.cox import cox_loss

_NO_SOLUTION = (
    "the closed form has no finite solution for these data: the values of X, y or the sample"
    " weights differ by too many orders of magnitude, or are too large to be added up.\n"
    '  Scale them to about 1 and remove outliers, or train step by step: set `solver="sgd"`.'
)

_LARGEST = 1e37


def solve(
    x: Samples,
    targets: Array,
    weights: Array | None,
    groups: NDArray[np.int64] | None,
    loss: str,
    seed: int,
    together: NDArray[np.int64] | None = None,
) -> tuple[Committee, EpochRecord]:
    """Fit a committee to encoded targets, and describe that as one epoch of a history."""
    started = time.perf_counter()
    problem, rows = _problem(x, targets, weights, groups, loss, together)
    committee = _fitted(problem, seed)
    outputs = committee.network.outputs(problem.x)
    record = EpochRecord(
        epoch=0,
        loss=mean_loss(loss, outputs, targets[rows], problem.weights),
        learning_rate=0.0,
        n_connections=committee.network.n_connections,
        density=committee.network.density,
        rewired=0,
        train_seconds=time.perf_counter() - started,
        rewire_seconds=0.0,
    )
    return committee, record


def solve_interactions(
    x: Samples,
    targets: Array,
    weights: Array | None,
    groups: NDArray[np.int64] | None,
    loss: str,
    seed: int,
    together: NDArray[np.int64] | None,
    scaling: Scaling,
) -> Committee:
    """Fit only members with a hidden layer that select features, with a given scaling.

    They find features that matter in products; linear members would add nothing to an average that
    has trained ones.
    """
    problem, _ = _problem(x, targets, weights, groups, loss, together)
    return _fitted(
        problem,
        seed,
        scaling=scaling,
        candidates=lambda kind: kind.model in ("pairs", "hidden") and kind.selects_features,
    )


def _problem(
    x: Samples,
    targets: Array,
    weights: Array | None,
    groups: NDArray[np.int64] | None,
    loss: str,
    together: NDArray[np.int64] | None,
) -> tuple[Problem, NDArray[np.intp]]:
    """Return the problem of the rows whose weight is not 0, and these rows."""
    kind = {"softmax_cross_entropy": "softmax", "sigmoid_cross_entropy": "sigmoid"}.get(
        loss, "squared"
    )
    counted = np.ones(len(targets)) if weights is None else np.asarray(weights, dtype=np.float64)
    rows = np.flatnonzero(counted > 0)
    goal = targets if kind == "squared" else 2.0 * (targets > 0.5) - 1.0
    whole = Problem(_values(x), goal, counted, groups, kind, together)
    return whole if rows.size == len(counted) else whole.take(rows), rows


def _values(x: Samples) -> Any:
    """Return values in single precision, or raise if their differences could overflow."""
    values = x.values(np.float32)
    stored = values.data if x.is_sparse else values
    if stored.size and not max(float(stored.max()), -float(stored.min())) < _LARGEST:
        raise InvalidInputError(_NO_SOLUTION)
    return values


def _fitted(problem: Problem, seed: int, **given: Any) -> Committee:
    # Hundreds of small products: a second BLAS thread costs more than it saves, and on a busy
    # machine a hundred times more.
    try:
        with threadpool_limits(limits=1, user_api="blas"):
            committee = fit_committee(problem, seed, **given)
    except (np.linalg.LinAlgError, ZeroDivisionError) as error:
        raise InvalidInputError(_NO_SOLUTION) from error
    if not committee.network.is_finite():
        raise InvalidInputError(_NO_SOLUTION)
    return committee


def solve_survival(
    x: Samples,
    targets: Array,
    weights: Array | None,
    ties: str,
    seed: int,
    together: NDArray[np.int64] | None = None,
) -> tuple[Committee, EpochRecord]:
    """Fit a committee to events and ranks of times, and describe that as one epoch."""
    started = time.perf_counter()
    counted = np.ones(len(targets)) if weights is None else np.asarray(weights, dtype=np.float64)
    rows = np.flatnonzero(counted > 0)
    event, rank = targets[:, 0] > 0, targets[:, 1]
    residuals = martingale_residuals(event, rank, counted)[:, None]
    strata = event.astype(np.int64)
    whole = Problem(_values(x), residuals, counted, strata, "squared", together)
    problem = whole if rows.size == len(counted) else whole.take(rows)
    try:
        with threadpool_limits(limits=1, user_api="blas"):
            committee = fit_survival_committee(problem, event[rows], rank[rows], ties, seed)
    except (np.linalg.LinAlgError, ZeroDivisionError) as error:
        raise InvalidInputError(_NO_SOLUTION) from error
    if not committee.network.is_finite():
        raise InvalidInputError(_NO_SOLUTION)
    outputs = committee.network.outputs(problem.x)
    record = EpochRecord(
        epoch=0,
        loss=cox_loss(outputs.astype(np.float64), targets[rows], counted[rows], ties),
        learning_rate=0.0,
        n_connections=committee.network.n_connections,
        density=committee.network.density,
        rewired=0,
        train_seconds=time.perf_counter() - started,
        rewire_seconds=0.0,
    )
    return committee, record
