"""Other measures of how strongly features are tied to classes, in the place of the recipe's F."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ratoon.committee.centred import Centred
from ratoon.committee.dual import dual_coefficients
from ratoon.committee.priors import f_statistic

Array = NDArray[Any]
Strengths = NDArray[np.float64]

N_BINS, PENALTY, SMALLEST = 3, 0.1, 1e-6
N_GIVING, ALIKE = 1000, 0.7


def information(z: Array, targets: Array, weights: Array) -> Strengths:
    """Return mutual information of the class and the thirds of a feature, as a G per degree.

    Twice the samples times the information is a chi-squared where nothing is to be found; per
    degree of freedom it has the scale of an F.

    >>> z = np.array([[0.0, 1.0], [0.1, -1.0], [5.0, 1.0], [5.1, -1.0]])
    >>> y = np.array([[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, 1.0]])
    >>> information(z, y, np.ones(4)).round(2).tolist()
    [2.77, 0.0]
    """
    del weights
    classes = (targets > 0).astype(np.float64)
    limits = np.quantile(z, np.arange(1, N_BINS) / N_BINS, axis=0)
    bins = (z[None] > limits[:, None]).sum(axis=0)
    n, counts = len(z), classes.sum(axis=0)
    total = np.zeros(z.shape[1])
    for b in range(N_BINS):
        inside = (bins == b).astype(np.float64)
        expected = np.maximum(np.outer(counts, inside.sum(axis=0)) / n, 1e-12)
        seen = classes.T @ inside
        total += (seen * np.log(np.maximum(seen, 1e-12) / expected)).sum(axis=0)
    degrees = (N_BINS - 1) * max(len(counts) - 1, 1)
    return np.asarray(np.clip(2.0 * total / degrees, 1e-6, 1e4))


def of_a_network_before(z: Array, targets: Array, weights: Array) -> Strengths:
    """Return what a first linear network, its prior by F, gives every feature in summed weight."""
    prior = f_statistic(z, targets, weights)
    x = Centred.of(z, weights)
    prior = prior / prior.mean()
    goal = targets - targets.mean(axis=0)
    [duals] = dual_coefficients(x.kernel(prior), goal, np.array([PENALTY]))
    found = np.abs(x.weighed(prior).T @ duals).sum(axis=1).astype(np.float64)
    return np.asarray(np.maximum(found / max(float(found.mean()), 1e-300), 1e-6))


def less_chance(z: Array, targets: Array, weights: Array) -> Strengths:
    """Return F less 1, which is about what a feature has that tells nothing; no less than a trace.

    >>> z = np.array([[0.0, 1.0], [0.1, -1.0], [5.0, 1.0], [5.1, -1.0]])
    >>> y = np.array([[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, 1.0]])
    >>> less_chance(z, y, np.ones(4)).round(6).tolist()
    [4999.0, 1e-06]
    """
    return np.maximum(f_statistic(z, targets, weights) - 1.0, SMALLEST)


def shared(z: Array, targets: Array, weights: Array) -> Strengths:
    """Return the mean F of a feature and of the strong ones it is correlated with.

    Strong are the `N_GIVING` with the largest F: all pairs of features would take too long.
    """
    f = f_statistic(z, targets, weights)
    x = Centred.of(z, weights).rows
    x = x / np.maximum(np.linalg.norm(x, axis=0), 1e-9)
    strong = np.argsort(-f, kind="stable")[:N_GIVING]
    alike = (np.abs(x.T @ x[:, strong]) > ALIKE).astype(np.float32)
    alike[strong, np.arange(strong.size)] = 0.0  # its own counts once, below
    return np.asarray((f + alike @ f[strong]) / (1 + alike.sum(axis=1)))
