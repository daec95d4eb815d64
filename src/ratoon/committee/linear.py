"""Solutions with few features: the lasso, and generations of ridge that narrow the prior.

For continuous targets that depend on few of many features.  A ridge prior spreads weight over all
features that are alike in strength; these give most of them none.
"""

from __future__ import annotations

import numpy as np

from ratoon.arrays import Array
from ratoon.committee.centred import Centred
from ratoon.committee.dual import dual_coefficients

N_GENERATIONS = 3
FEATURES_PER_SAMPLE = 4
_SMALLEST_LEVEL, _MOST_STEPS, _PRECISION = 0.03, 200, 1e-3


def lasso_path(x: Centred, targets: Array, n_levels: int) -> Array:
    """Return lasso weights (levels, features, outputs) at falling penalties.

    Levels are relative to the least penalty that leaves an output no feature at all, and evenly
    spaced by ratio down to 0.03 of it.  Targets must have mean 0.  Each level
    starts with the features in use or in reach, and takes in others only where they are missed.

    Examples
    --------
    >>> x = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> lasso_path(Centred.of(x, np.ones(4)), 2 * x[:, :1], 5)[-1].round(2).tolist()
    [[1.94], [0.0]]
    """
    n_features, n_outputs = x.rows.shape[1], targets.shape[1]
    found = np.zeros((n_levels, n_features, n_outputs))
    pull = np.asarray(x.rows.T @ targets, dtype=np.float64)
    top = np.maximum(np.abs(pull).max(axis=0), 1e-12)
    weights = np.zeros((n_features, n_outputs))
    levels = np.logspace(0, np.log10(_SMALLEST_LEVEL), n_levels + 1)
    for number in range(n_levels):
        penalty = levels[number + 1] * top
        active = np.flatnonzero(((np.abs(pull) > penalty) | (weights != 0)).any(axis=1))
        for _ in range(5):
            part = x.columns(active).astype(np.float64)
            start = weights[active]
            weights = np.zeros((n_features, n_outputs))
            weights[active] = _shrunken_descent(part, targets, penalty, start)
            pull = x.rows.T @ (targets - part @ weights[active])
            wrong = (np.abs(pull) > 1.02 * penalty).any(axis=1)
            wrong[active] = False
            if not wrong.any():
                break
            active = np.union1d(active, np.flatnonzero(wrong))
        found[number] = weights
    return found


def _shrunken_descent(x: Array, targets: Array, penalty: Array, start: Array) -> Array:
    """Minimise half the squared error plus penalty times the sum of sizes, with momentum."""
    gram, pull = x.T @ x, x.T @ targets
    if gram.size == 0:
        return np.zeros((0, targets.shape[1]))
    small = gram if gram.shape[0] <= x.shape[0] else x @ x.T
    steepest = max(float(np.linalg.eigvalsh(small)[-1]), 1e-12)
    weights, ahead, speed = start, start, 1.0
    for _ in range(_MOST_STEPS):
        moved = ahead - (gram @ ahead - pull) / steepest
        new = np.sign(moved) * np.maximum(np.abs(moved) - penalty / steepest, 0.0)
        step = new - weights
        # Momentum that points uphill is let go of.
        if float(np.sum((ahead - new) * step)) > 0:
            speed = 1.0
        faster = (1 + np.sqrt(1 + 4 * speed**2)) / 2
        ahead = new + (speed - 1) / faster * step
        weights, speed = new, faster
        if float(np.abs(step).max()) <= _PRECISION * max(float(np.abs(new).max()), 1e-12):
            break
    return weights


def generations(x: Centred, targets: Array, prior: Array, penalties: Array) -> Array:
    """Return ridge weights (generations, penalties, features, outputs), each from the one before.

    A generation's prior variance is the squared weight of the generation before, and none for all
    but the largest, four features per sample.  Targets must have mean 0.

    Examples
    --------
    >>> x = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> y = 2 * x[:, :1] + 0.2 * x[:, 1:]
    >>> centred = Centred.of(x, np.ones(4))
    >>> generations(centred, y, np.ones(2), np.array([0.1]))[:, 0, 1, 0].round(4).tolist()
    [0.0567, 0.0065, 0.0001]
    """
    n_samples, n_features = x.rows.shape
    n_outputs = targets.shape[1]
    found = np.zeros((N_GENERATIONS, penalties.size, n_features, n_outputs))
    prior = prior / max(float(prior.mean()), 1e-300)
    duals = dual_coefficients(x.kernel(prior), targets, penalties)
    basis = x.weighed(prior).T.astype(np.float64)
    first = [basis @ dual for dual in duals]
    kept = min(FEATURES_PER_SAMPLE * n_samples, n_features)
    for number, penalty in enumerate(penalties):
        weights = first[number]
        for generation in range(N_GENERATIONS):
            size = np.square(weights).sum(axis=1)
            largest = np.sort(np.argpartition(-size, kept - 1)[:kept])
            largest = largest[size[largest] > 1e-8 * float(size.max())]
            weights = np.zeros((n_features, n_outputs))
            if largest.size:
                part = x.columns(largest)
                tilted = part * (size[largest] / size[largest].mean()).astype(part.dtype)
                kernel = (tilted @ part.T).astype(np.float64)
                dual = dual_coefficients(kernel, targets, np.array([penalty]))[0]
                weights[largest] = tilted.T.astype(np.float64) @ dual
            found[generation, number] = weights
    return found
