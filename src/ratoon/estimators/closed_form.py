"""The default for few samples and many features: solve for the network instead of descending.

`ratoon.committee` says how.  It is taken where nothing about the network or its training was asked
for; whoever sets a width, a density, a strategy or a learning rate wants a network trained so.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from ratoon.arrays import Array
from ratoon.committee import Committee, Problem, fit_committee, suits
from ratoon.estimators.presets import Shape, is_open
from ratoon.history import EpochRecord
from ratoon.losses import mean_loss

_OPEN = (
    "preset",
    "hidden_layer_sizes",
    "epsilon",
    "density",
    "evolution",
    "learning_rate_init",
    "learning_rate",
    "max_iter",
    "batch_size",
    "weight_decay",
    "init",
    "output_init",
    "start",
    "topology",
    "clip",
    "label_smoothing",
    "loss",
    "callbacks",
    "dtype",
)
_AT_DEFAULT = {
    "activation": "relu",
    "dropout": 0.0,
    "scale": "standard",
    "early_stopping": False,
    "warm_start": False,
    "warm_up": 0.0,
}


def is_to_be_solved(given: Mapping[str, Any], shape: Shape, x: Any, eval_set: Any) -> bool:
    """Whether `fit` solves for the network.

    Always with ``solver="ridge"``.  With ``"auto"`` if the data have few samples and many
    features, and nothing else was asked for.
    """
    solver = given["solver"]
    if isinstance(solver, str) and solver == "ridge":
        return True
    return (
        is_open(solver)
        and eval_set is None
        and suits(shape.n_samples, shape.n_features, x.nnz if scipy.sparse.issparse(x) else None)
        and all(is_open(given.get(name)) for name in _OPEN)
        and all(given[name] == value for name, value in _AT_DEFAULT.items())
    )


def solve(
    x: Any,
    targets: Array,
    weights: Array | None,
    groups: NDArray[np.int64] | None,
    loss: str,
    seed: int,
) -> tuple[Committee, EpochRecord]:
    """Fit a committee to encoded targets, and describe that as one epoch of a history."""
    started = time.perf_counter()
    kind = {"softmax_cross_entropy": "softmax", "sigmoid_cross_entropy": "sigmoid"}.get(
        loss, "squared"
    )
    counted = np.ones(len(targets)) if weights is None else np.asarray(weights, dtype=np.float64)
    rows = np.flatnonzero(counted > 0)
    goal = targets if kind == "squared" else 2.0 * (targets > 0.5) - 1.0
    if scipy.sparse.issparse(x):
        samples = scipy.sparse.csr_array(x, dtype=np.float32)
    else:
        samples = np.asarray(x, dtype=np.float32)
    whole = Problem(samples, goal, counted, groups, kind)
    # Hundreds of small products: a second BLAS thread costs more than it brings, and on a busy
    # machine a hundred times more.
    with threadpool_limits(limits=1, user_api="blas"):
        committee = fit_committee(whole if rows.size == len(counted) else whole.take(rows), seed)
    outputs = committee.network.outputs(whole.x[rows])
    record = EpochRecord(
        epoch=0,
        loss=mean_loss(loss, outputs, targets[rows], counted[rows]),
        learning_rate=0.0,
        n_connections=committee.network.n_connections,
        density=committee.network.density,
        rewired=0,
        train_seconds=time.perf_counter() - started,
        rewire_seconds=0.0,
    )
    return committee, record
