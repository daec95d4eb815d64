"""Which way a feature points: the class it is highest in, or the sign of its correlation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ratoon.arrays import Array
from ratoon.samples.in_memory import wrap


def directions(x: Any, y: Array, class_names: Sequence[str] | None) -> list[str]:
    """Return one word per column of ``x``.

    Parameters
    ----------
    x : ndarray or SciPy matrix of shape (n_samples, n_features)
        The features in question; made dense, so pass those only.
    y : ndarray of shape (n_samples,)
        Numbers of classes, or a continuous target.
    class_names : sequence of str or None
        Names of the classes; None for a continuous target.

    Examples
    --------
    >>> x = np.array([[0.0, 5.0, 1.0], [1.0, 4.0, 1.0]])
    >>> directions(x, np.array([0, 1]), ["ill", "well"])
    ['highest in well', 'highest in ill', '']
    >>> directions(x, np.array([0.5, 1.5]), None)
    ['rises', 'falls', '']
    """
    dense = wrap(x).dense().astype(np.float64)
    varies = np.ptp(dense, axis=0) > 0
    if class_names is None:
        slope = (dense - dense.mean(axis=0)).T @ (y - y.mean())
        words = np.where(slope > 0, "rises", np.where(slope < 0, "falls", ""))
        return [str(word) if moves else "" for word, moves in zip(words, varies, strict=True)]
    present = np.unique(y)
    means = np.stack([dense[y == code].mean(axis=0) for code in present])
    names = [f"highest in {class_names[present[k]]}" for k in means.argmax(axis=0)]
    return [name if moves else "" for name, moves in zip(names, varies, strict=True)]
