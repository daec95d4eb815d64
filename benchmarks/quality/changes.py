"""Changes to the default recipe before members are fitted: samples, strengths, folds, layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from quality.apart import replaced
from quality.rivals import strength
from quality.sets import Split, standardised
from ratoon.recipe import committee, hidden, members, views
from ratoon.recipe.centred import Centred
from ratoon.recipe.dual import dual_coefficients
from ratoon.recipe.strength import f_statistic

Array = NDArray[Any]

N_SELECTED, N_BINS, PENALTY = 200, 3, 0.1


@dataclass(frozen=True)
class Change:
    """What stands in the place of what, and what is done to samples before anything else."""

    replacements: tuple[tuple[Any, str, Any], ...] = ()
    samples: Callable[[Split], Split] | None = None

    @contextmanager
    def made(self) -> Iterator[None]:
        """Have the replacements in place."""
        with ExitStack() as stack:
            for module, name, value in self.replacements:
                stack.enter_context(replaced(module, name, value))
            yield


def strongest_only(parts: Split) -> Split:
    """Return the features with the largest F on the training rows."""
    f = strength(standardised(parts).x, parts.y)
    kept = np.sort(np.argsort(-f, kind="stable")[:N_SELECTED])
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


def information(z: Array, targets: Array, weights: Array) -> NDArray[np.float64]:
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


def of_a_network_before(z: Array, targets: Array, weights: Array) -> NDArray[np.float64]:
    """Return what a first linear network, its prior by F, gives every feature in summed weight."""
    prior = f_statistic(z, targets, weights)
    x = Centred.of(z, weights)
    prior = prior / prior.mean()
    goal = targets - targets.mean(axis=0)
    [duals] = dual_coefficients(x.kernel(prior), goal, np.array([PENALTY]))
    found = np.abs(x.weighed(prior).T @ duals).sum(axis=1).astype(np.float64)
    return np.asarray(np.maximum(found / max(float(found.mean()), 1e-300), 1e-6))


CHANGES: dict[str, Change] = {
    "default": Change(),
    "folds 2": Change(((committee, "N_FOLDS", 2),)),
    "selected": Change(samples=strongest_only),
    "neurons 1000": Change(((hidden, "N_NEURONS", 1000),)),
    "clip none": Change(((views, "CLIP", 1e6),)),
    "folds 5": Change(((committee, "N_FOLDS", 5),)),
    "clip 5": Change(((views, "CLIP", 5.0),)),
    "rows": Change(samples=rows_standardised),
    "ranks": Change(samples=ranks),
    "before": Change(((members, "f_statistic", of_a_network_before),)),
    "information": Change(((members, "f_statistic", information),)),
    "log": Change(samples=logarithms),
    "asinh": Change(samples=bent),
    "inputs 5": Change(((hidden, "FAN_IN", 5),)),
    "clip 2": Change(((views, "CLIP", 2.0),)),
    "clip 10": Change(((views, "CLIP", 10.0),)),
    "inputs 20": Change(((hidden, "FAN_IN", 20),)),
    "neurons 10000": Change(((hidden, "N_NEURONS", 10_000),)),
}
"""By name, in the order in which they are worth their time."""
