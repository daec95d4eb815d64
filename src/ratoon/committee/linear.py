"""Linear solvers: ridge regression in the dual, the lasso path, iterated ridge regression."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ratoon.arrays import Array
from ratoon.committee.problem import CentredRows, Problem, Standardisation

N_ITERATIONS = 3
FEATURES_PER_SAMPLE = 4
_SMALLEST_LEVEL, _MAX_STEPS, _TOLERANCE = 0.03, 200, 1e-3


def ridge_duals(kernel: Array, targets: Array, penalties: Array) -> Array:
    """Solve ``(K + penalty * mean(diag K) * I) a = t`` for every penalty.

    Returns an array of shape (penalties, samples, outputs).  The matrices are samples by samples,
    for any number of features.

    Examples
    --------
    >>> ridge_duals(np.eye(2), np.array([[2.0], [4.0]]), np.array([1.0]))[0].tolist()
    [[1.0], [2.0]]
    """
    n_samples = kernel.shape[0]
    scale = max(float(np.trace(kernel)) / n_samples, 1e-12)
    solutions = []
    for penalty in penalties.tolist():
        factor = scipy.linalg.cho_factor(
            kernel + penalty * scale * np.eye(n_samples), lower=True, check_finite=False
        )
        solutions.append(scipy.linalg.cho_solve(factor, targets, check_finite=False))
    return np.array(solutions)


def lasso_path(x: CentredRows, targets: Array, n_levels: int) -> Array:
    """Return lasso weights (levels, features, outputs) for decreasing penalties.

    Penalties are relative to the smallest one for which all weights are 0, and are spaced
    geometrically down to 0.03 of it.  Targets must have mean 0.  Each level starts with the active
    features of the one before and adds features that violate the optimality conditions.

    Examples
    --------
    >>> x = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> lasso_path(CentredRows.of(x, np.ones(4)), 2 * x[:, :1], 5)[-1].round(2).tolist()
    [[1.94], [0.0]]
    """
    n_features, n_outputs = x.rows.shape[1], targets.shape[1]
    path = np.zeros((n_levels, n_features, n_outputs))
    gradient = np.asarray(x.rows.T @ targets, dtype=np.float64)
    top = np.maximum(np.abs(gradient).max(axis=0), 1e-12)
    weights = np.zeros((n_features, n_outputs))
    levels = np.logspace(0, np.log10(_SMALLEST_LEVEL), n_levels + 1)
    for number in range(n_levels):
        penalty = levels[number + 1] * top
        active = np.flatnonzero(((np.abs(gradient) > penalty) | (weights != 0)).any(axis=1))
        for _ in range(5):
            part = x.columns(active).astype(np.float64)
            start = weights[active]
            weights = np.zeros((n_features, n_outputs))
            weights[active] = _proximal_gradient(part, targets, penalty, start)
            gradient = x.rows.T @ (targets - part @ weights[active])
            violates = (np.abs(gradient) > 1.02 * penalty).any(axis=1)
            violates[active] = False
            if not violates.any():
                break
            active = np.union1d(active, np.flatnonzero(violates))
        path[number] = weights
    return path


def _proximal_gradient(x: Array, targets: Array, penalty: Array, start: Array) -> Array:
    """Minimise ``|x w - t|^2 / 2 + penalty |w|_1`` by accelerated proximal gradient descent."""
    gram, products = x.T @ x, x.T @ targets
    if gram.size == 0:
        return np.zeros((0, targets.shape[1]))
    smaller = gram if gram.shape[0] <= x.shape[0] else x @ x.T
    lipschitz = max(float(np.linalg.eigvalsh(smaller)[-1]), 1e-12)
    weights, ahead, momentum = start, start, 1.0
    for _ in range(_MAX_STEPS):
        moved = ahead - (gram @ ahead - products) / lipschitz
        new = np.sign(moved) * np.maximum(np.abs(moved) - penalty / lipschitz, 0.0)
        step = new - weights
        # Restart the momentum where it points uphill.
        if float(np.sum((ahead - new) * step)) > 0:
            momentum = 1.0
        next_momentum = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / next_momentum * step
        weights, momentum = new, next_momentum
        if float(np.abs(step).max()) <= _TOLERANCE * max(float(np.abs(new).max()), 1e-12):
            break
    return weights


def lasso_strength(
    x: Any, targets: Array, weights: Array, n_levels: int = 10
) -> NDArray[np.float64]:
    """Return the mean absolute lasso weight of every feature over a path of penalties.

    Examples
    --------
    >>> x = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], dtype=np.float32)
    >>> lasso_strength(x, 2.0 * x[:, :1], np.ones(4)).round(2).tolist()
    [1.54, 0.0]
    """
    problem = Problem(x, targets, weights, None, "squared")
    z = Standardisation.fit(x, weights).transform(x)
    path = lasso_path(CentredRows.of(z, weights), problem.centred_targets()[0], n_levels)
    return np.asarray(np.abs(path).mean(axis=(0, 2)))


def iterated_ridge(x: CentredRows, targets: Array, prior: Array, penalties: Array) -> Array:
    """Return iterated ridge weights (iterations, penalties, features, outputs).

    The prior variance of every feature is its squared weight in the iteration before, so that
    weight concentrates on few features.  Only the largest four per sample are kept.  Targets must
    have mean 0.

    Examples
    --------
    >>> x = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> y = 2 * x[:, :1] + 0.2 * x[:, 1:]
    >>> centred = CentredRows.of(x, np.ones(4))
    >>> iterated_ridge(centred, y, np.ones(2), np.array([0.1]))[:, 0, 1, 0].round(4).tolist()
    [0.0567, 0.0065, 0.0001]
    """
    n_samples, n_features = x.rows.shape
    n_outputs = targets.shape[1]
    found = np.zeros((N_ITERATIONS, penalties.size, n_features, n_outputs))
    prior = prior / max(float(prior.mean()), 1e-300)
    duals = ridge_duals(x.kernel(prior), targets, penalties)
    n_kept = min(FEATURES_PER_SAMPLE * n_samples, n_features)
    for number, penalty in enumerate(penalties):
        weights = np.asarray(x.rows.T @ duals[number]) * prior[:, None]
        for iteration in range(N_ITERATIONS):
            size = np.square(weights).sum(axis=1)
            largest = np.sort(np.argpartition(-size, n_kept - 1)[:n_kept])
            largest = largest[size[largest] > 1e-8 * float(size.max())]
            weights = np.zeros((n_features, n_outputs))
            if largest.size:
                part = x.columns(largest)
                scaled = part * (size[largest] / size[largest].mean()).astype(part.dtype)
                kernel = (scaled @ part.T).astype(np.float64)
                dual = ridge_duals(kernel, targets, np.array([penalty]))[0]
                weights[largest] = scaled.T.astype(np.float64) @ dual
            found[iteration, number] = weights
    return found
