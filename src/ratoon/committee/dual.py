"""Ridge regression in the dual: matrices of samples by samples, whatever the number of features."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from ratoon.arrays import Array

_EIGEN_UP_TO = 400


def dual_coefficients(kernel: Array, targets: Array, penalties: Array) -> Array:
    """Solve ``(K + penalty * mean(diag K) * I) a = t`` for every penalty.

    Returns an array (penalties, samples, outputs).

    Examples
    --------
    >>> dual_coefficients(np.eye(2), np.array([[2.0], [4.0]]), np.array([1.0]))[0].tolist()
    [[1.0], [2.0]]
    """
    n_samples = kernel.shape[0]
    scale = max(float(np.trace(kernel)) / n_samples, 1e-12)
    if n_samples <= _EIGEN_UP_TO:
        values, vectors = np.linalg.eigh(kernel)
        values = np.maximum(values, 0.0)
        turned = vectors.T @ targets
        return np.array(
            [vectors @ (turned / (values + p * scale)[:, None]) for p in penalties.tolist()]
        )
    solutions = []
    for penalty in penalties.tolist():
        factor = scipy.linalg.cho_factor(
            kernel + penalty * scale * np.eye(n_samples), lower=True, check_finite=False
        )
        solutions.append(scipy.linalg.cho_solve(factor, targets, check_finite=False))
    return np.array(solutions)
