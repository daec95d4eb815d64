"""Changes of the samples before anything else looks at them; nothing is learned of test rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from quality.rivals import strength
from quality.sets import Split, standardised

Array = NDArray[Any]


def strongest_only(parts: Split, n_kept: int) -> Split:
    """Return the features with the largest F on the training rows."""
    f = strength(standardised(parts).x, parts.y)
    kept = np.sort(np.argsort(-f, kind="stable")[:n_kept])
    return parts._replace(x=parts.x[:, kept], x_test=parts.x_test[:, kept])


def logarithms(parts: Split) -> Split:
    """Return log(1 + size) of every value, with its sign."""
    both = (np.sign(x) * np.log1p(np.abs(x)) for x in (parts.x, parts.x_test))
    return parts._replace(**dict(zip(("x", "x_test"), both, strict=True)))


def bent(parts: Split) -> Split:
    """Return asinh of z-scores."""
    z = standardised(parts)
    return z._replace(x=np.arcsinh(z.x), x_test=np.arcsinh(z.x_test))


def ranks(parts: Split) -> Split:
    """Return normal scores: where a value stands among those of the training rows."""
    order = np.sort(parts.x, axis=0)
    n = len(order)

    def scores(x: Array) -> Array:
        places = np.empty_like(x)
        for j in range(x.shape[1]):
            below = np.searchsorted(order[:, j], x[:, j], side="left")
            up_to = np.searchsorted(order[:, j], x[:, j], side="right")
            places[:, j] = (below + up_to + 1) / 2
        return np.asarray(ndtri(places / (n + 2)))

    return parts._replace(x=scores(parts.x), x_test=scores(parts.x_test))


def rows_standardised(parts: Split) -> Split:
    """Return every sample less its own mean, over its own deviation."""

    def of(x: Array) -> Array:
        deviation = np.maximum(x.std(axis=1, keepdims=True), 1e-12)
        return np.asarray((x - x.mean(axis=1, keepdims=True)) / deviation)

    return parts._replace(x=of(parts.x), x_test=of(parts.x_test))
